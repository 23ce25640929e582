"""Random requests over HTTP to a real installation whose processes are killed continuously; then the verdict.

`python -m qa.soak --seconds 3600` runs it by hand, `tests/integration/workers/test_kills.py` as a test.
Read `run.py` first. `templates.py` generates the requests, `users.py` sends them and knows the expected
results, `killer.py` kills and measures, `verdict.py` compares the results with the requests.
"""
