"""The simulated Nova: `service.py`, and a module per family of objects."""
