"""Resource types of Designate. Start with `designate_type.py`."""
