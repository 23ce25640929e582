"""HTTP in, Heat JSON out: the orchestration API v1 (docs/internals/rest-api.md).

Never parses a template, decides nothing and moves no state: it calls `operations`, reads through `store` and
shapes the answer. Read `routes.py` first: what every request passes through, then one module per collection.
"""
