"""Diagnosis: blocked nodes, failure causes, differences between revisions."""
