"""Tables and SQL: the source of truth of all state. No other package has SQL, and nothing here decides.

Read `tables/` first, then `nodes/repository.py` (the statements of a check) and `traversals/`. The convention
for SQL is `adr/0001-sql-convention.md`.

* `access/`: grants of access to resources, API tokens, key pairs, idempotent requests
* `connections/`: pools, sessions, prepared connections, group commit, streaming, advisory locks
* `events/`: reading and following events, webhooks, event sinks
* `keystone/`: delegated credentials and stack users, until their removal at Keystone is confirmed
* `maintenance/`: the sweep, the stall audit, the purge, orphans, key rotation, gauges, workers
* `nodes/`: claiming, reading and settling nodes; hooks; the outcome statements
* `pictures/`: reads for field, map and timeline of stacks of any size
* `planning/`: writing the rows of a plan, in slices or in one statement
* `schema/`: creating a database, migrations, the schema version
* `signals/`: accepting and processing signals, watchers, resizing groups
* `stacks/`: reads for the API: stacks, resources, revisions, history, progress, blockers
* `tables/`: declarations of all tables
* `traversals/`: accepting requests; starting, completing and failing traversals; child stacks

`snapshots.py` and `software.py` have the statements of snapshots and of software deployments.
"""
