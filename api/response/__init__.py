"""Formatting of responses: serialization, errors, failures."""
