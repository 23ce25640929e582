"""Background work: sweep, orphans, purge, heartbeats, key rotation.

`sweep.py` finds expired leases and overdue nodes, and re-enqueues them.
"""
