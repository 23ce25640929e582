"""Tables and SQL. Nothing here decides.

`tables/` declares the tables and `schema/` migrates them; `connections/` has pools and prepared statements.
Read `nodes/repository.py` first, the statements of a check. `traversals/`, `planning/`, `signals/` and
`maintenance/` are the rest of the engine; `stacks/` and `events/` read for the API.
"""
