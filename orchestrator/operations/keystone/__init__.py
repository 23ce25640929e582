"""Delegated credentials and stack users at Keystone: creation, and removal by the reaper."""
