"""Resource types of Octavia, one per module. `base.py` has what they have in common."""
