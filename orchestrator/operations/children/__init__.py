"""Nested stacks: their templates, types and desired states."""
