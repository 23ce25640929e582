"""The launcher: PostgreSQL and Valkey from their wheels, workers and API, as one tree of processes that ends
together.

Read `processes.py` for what is started, `supervisor.py` for how it is kept running, `postgres.py` and
`valkey.py` for the servers.
"""
