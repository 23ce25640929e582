"""Authentication, authorization, tokens, and encryption at rest.

Every query of the other packages is scoped by the `Caller` that this package determines. Read `caller.py`
first.
"""
