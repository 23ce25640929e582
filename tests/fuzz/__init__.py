"""Driving the API by its own description: what schemathesis is told, and the stacks it finds."""
