"""The orchestration API v1 over HTTP (docs/internals/rest-api.md).

The API never parses a template, makes no decisions and changes no state: it calls `operations`, reads through
`store` and formats responses. Start with `routes.py` (steps common to all requests), then read a module per
collection.
"""

from orchestrator.start_up import prepare_imports

prepare_imports()
