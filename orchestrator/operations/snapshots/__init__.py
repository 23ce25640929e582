"""Snapshots: create, restore, delete."""
