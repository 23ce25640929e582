"""Previews: the effect of a create or an update, without side effects."""
