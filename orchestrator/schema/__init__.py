"""Value types and constraints, shared by template parameters and resource properties.

Never reads a template, is independent of resource types, and never calls a service. Read `constraints.py`
first, then `properties.py`.
"""
