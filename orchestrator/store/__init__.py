"""The tables and the statements that matter.

`models.py`, `access_models.py`, `credential_models.py`, `software_models.py`, `stack_user_models.py` and
`webhook_models.py` declare the tables; `nodes.py` runs the statements a check lives by
(`node_statements.py`, `ending_statements.py`), `planning.py`, `traversals.py` and `overdue.py` the rest of
the engine's; `software.py` is of software configs, `credentials.py` of what users gave at Keystone,
`stack_users.py` of what stacks have there; `stacks.py`, `resources.py`, `events.py`, `tail.py` and
`revisions.py` read for the API. Nothing here decides.
"""
