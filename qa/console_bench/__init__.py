"""Measurements of the console in a browser: `make bench-ui`."""
