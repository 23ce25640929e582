"""The simulated Keystone: `service.py`, and a module per family of objects."""
