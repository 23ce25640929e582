"""CloudFormation's stack actions (docs/internals/rest-api.md §14), with the same operations as the native
API.

`api/cloudformation/endpoint.py` authenticates callers and writes responses; the other modules know nothing of
XML or signatures. Read `actions.py` first.
"""
