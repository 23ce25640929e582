"""Delegated credentials and stack users at Keystone."""
