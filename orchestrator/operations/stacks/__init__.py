"""Requests that start a traversal: create, update, delete, stack actions, rollback."""
