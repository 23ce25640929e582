"""Validation of requests, and the report of `POST /validate`."""
