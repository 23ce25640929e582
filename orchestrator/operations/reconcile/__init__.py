"""Checks: each message visits a node. Read `check.py` first."""
