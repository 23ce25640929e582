"""Limits that each process of the API counts for itself.

`rate_limits.py` limits authenticated requests per project and per caller, `failed_logins.py` other requests
per client address. The quotas of stacks and snapshots are not here: `operations/context.py` reads them, and
the operations that create a stack or snapshot enforce them.
"""
