"""The simulated Glance: `service.py`, and a module per family of objects."""
