"""Heat's black-box tests, run from the harness next to this repository against a server started for them.

`python -m qa.conformance` runs the published list (`make conformance`). `chosen.py` selects the tests and
reads their results, `server.py` configures the server and the harness, `identity.py` starts the stand-in for
Keystone that both use.
"""
