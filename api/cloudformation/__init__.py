"""CloudFormation's actions on stacks (docs/internals/rest-api.md §14): the same operations as the native
API's, in Amazon's words.

Who asks is found out, and answers are written, in `api/cloudformation/endpoint.py`; nothing here knows of XML
or signatures. Read `actions.py` first.
"""
