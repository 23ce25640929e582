"""Boxes on a shelf: `shelf.py` knows the shelf, `box.py` makes its boxes resources."""
