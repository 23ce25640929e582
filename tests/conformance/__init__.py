"""Heat's own black-box tests, run from the harness beside this repository against a server started for them.

`python -m tests.conformance` runs the published list (`make conformance`). `chosen.py` says what is run and
what becomes of its results, `server.py` what the server they are run against is allowed.
"""
