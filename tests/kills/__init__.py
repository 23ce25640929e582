"""Random requests over HTTP to a real installation whose processes are killed all the time; then the verdict.

`python -m tests.kills --seconds 3600` runs it by hand, `tests/integration/workers/test_kills.py` as a test.
Read `run.py` first. `templates.py` makes what is asked for, `users.py` asks and knows what must come of it,
`killer.py` kills and measures, `verdict.py` compares the world with what was asked.
"""
