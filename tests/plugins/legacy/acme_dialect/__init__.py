"""Acme's own words for templates: `functions.py`, `constraints.py`, and `formats.py` that has them."""
