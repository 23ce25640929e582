"""Bulk writes and comparisons of the planner."""
