"""The check: one message, one node. Read `check.py` first."""
