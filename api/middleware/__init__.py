"""Steps common to all requests: access log, response headers, audit, API version, authorization.

`api/layers.py` and `api/request_steps.py` have their order. Limits are in `api/limits/`. Authentication, the
check of a token or password, is in `orchestrator/security/authenticators.py`.
"""
