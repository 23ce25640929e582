"""Authentication, authorization, tokens, and encryption at rest.

`encryption.py` has the cipher. Hidden parameters are encrypted by `desired_stack` of
`operations/stacks/create_delete.py`, the data of a resource by `operations/reconcile/outcome_rows.py`.

Every query of the other packages is scoped by the `Caller` that this package determines. Read `caller.py`
first.
"""
