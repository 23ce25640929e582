"""Signals: acceptance, processing, and scaling of groups."""
