"""Bodies of our own endpoints, which Heat does not have: requests and answers.

A model is both: the description in the API document (`api/openapi/`), and the check of a request or the form
of an answer. Heat's endpoints are read as Heat reads them; their descriptions are in `api/openapi/` only.
Start with `model.py`.
"""
