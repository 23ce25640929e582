"""Requests that start a traversal: create, update, delete, stack actions, rollback.

`actions.py` also cancels an update: with a rollback it starts a traversal that supersedes the update, without
one it halts the update's traversal. `engine/check/decide.py` stops the visits of such traversals.

`create_delete.py` builds the rows of a stack: `desired_stack` encrypts the hidden parameters, and
`store/traversals/accept.py` enforces the quota of stacks per project.
"""
