"""Steps of a resource that is a nested stack. Read `steps.py` first."""
