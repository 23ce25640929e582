"""Differences between revisions, and kinds of failures."""
