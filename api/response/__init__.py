"""Shaping of answers: serialization, errors, failures."""
