"""Validation of a template against its resource types."""
