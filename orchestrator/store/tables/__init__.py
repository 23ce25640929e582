"""Table declarations."""
