"""The launcher: PostgreSQL and Valkey from their wheels, workers and API as one process tree, which ends
together.

Read `processes.py` for the list of processes, `supervisor.py` for their supervision, `fork_server.py` for the
start of workers and API, `postgres.py` and `valkey.py` for the servers.
"""
