"""Grants of access to resources, and idempotency keys."""
