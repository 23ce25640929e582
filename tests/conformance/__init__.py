"""Heat's own black-box tests, run from the harness beside this repository against a server started for them.

`python -m tests.conformance` runs the published list (`make conformance`). `chosen.py` says what is run and
what became of it, `server.py` what the server is told and what the harness, `identity.py` starts the stand-in
for Keystone that both ask.
"""
