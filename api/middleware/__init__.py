"""Steps common to all requests: access log, audit, rate limits, API version, authorization.

Authentication, the check of a token or password, is in `orchestrator/security/authenticators.py`.
"""
