"""The views of the orchestration API v1, a module per collection.

`stacks.py` builds the JSON of a stack (`show`); `stack_documents.py` serves its template, environment and
files.
"""
