"""Formatting of responses: serialization, errors, failures.

The body of a stack, resource or snapshot is built by the view of its collection in `api/v1/`.
"""
