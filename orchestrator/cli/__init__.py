"""The `orchestrator` command. Client commands speak HTTP only; `up`, `migrate`, `token` and `rotate-keys` are
the server's.

Read `main.py` first, then `stack.py`.
"""
