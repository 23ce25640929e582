"""Use cases, one function for each operation a caller can request, with their I/O: accept, plan, check,
sweep, purge.

Operations never import HTTP or Celery: they return messages as values, and the caller sends them after the
commit. Read `reconcile/check.py` first, the visit to a node; `stacks/create_delete.py` and
`planning/planner.py` precede it in the life of a stack. `stack_completion.py` follows it:
it ends a stack and, for a child stack, wakes the node of its parent's resource.
"""
