"""Use cases, one function per request a caller can make, with their I/O: accept, plan, check, sweep, purge.

Operations never import HTTP or Celery: messages are values that they return, sent by the caller after the
commit. Read `reconcile/check.py` first, the visit to a node; `stacks/create_delete.py` and
`planning/planner.py` come before it in the life of a stack, `stack_completion.py` after it.
"""
