"""Background work: sweep, orphans, purge, heartbeats, key rotation."""
