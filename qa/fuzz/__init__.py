"""Fuzzing the API by its own description: configuration of schemathesis, and stacks for its requests."""
