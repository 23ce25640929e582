"""Replaces constants (`tests/constants.py`). Python imports this at the start of a process."""

from tests.constants import apply

apply()
