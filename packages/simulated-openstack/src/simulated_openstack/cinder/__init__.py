"""The simulated Cinder: `service.py`, and a module per family of objects."""
