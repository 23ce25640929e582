"""Resource types of Barbican. Start with `barbican_type.py`."""
