"""One function for each thing anyone can ask for, with its I/O: accept, plan, check, sweep, purge.

Operations know nothing of HTTP or Celery: messages are values they return, sent by the caller after the
commit. Read `check.py` first, one visit to one node; `stacks.py` and `plan.py` come before it in a stack's
life, `lifecycle.py` after.
"""
