"""The HTTP client of the commands."""
