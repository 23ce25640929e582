"""Nested stacks: their templates, types and desired states.

`operations/reconcile/nested/` starts the transitions of a child stack. The end of a child stack, which wakes
the node of its parent's resource, is in `operations/stack_completion.py`.
"""
