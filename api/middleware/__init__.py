"""Steps common to all requests: access log, response headers, audit, rate limits, API version, authorization.

`rate_limits.py` limits authenticated requests per project and per caller, `failed_logins.py` other requests
per client address. The quotas of stacks and snapshots are not here: `operations/context.py` reads them, and
the operations that create a stack or snapshot enforce them.

Authentication, the check of a token or password, is in `orchestrator/security/authenticators.py`.
"""
