"""The tables and the statements that matter.

`models.py` declares the tables; `nodes.py` runs the statements a check lives by (`node_statements.py`,
`ending_statements.py`), `planning.py`, `traversals.py` and `overdue.py` the rest of the engine's;
`stacks.py`, `resources.py`, `events.py` and `revisions.py` read for the API. Nothing here decides.
"""
