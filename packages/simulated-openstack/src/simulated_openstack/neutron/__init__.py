"""The simulated Neutron: `service.py`, and a module per family of objects."""
