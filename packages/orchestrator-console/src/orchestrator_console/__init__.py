"""The web console below `/ui`: HTML pages over the API's own responses.

The console has no access to the database. Each page calls routes of the API in the same process with the
credentials of the session (`api_client.py`), so policy, masking, audit and rate limits are the API's.
It never queries the database. `api/web_applications.py` mounts it and is all that it imports of the product,
`app.py` has the steps common to all requests, `views/` a module per group of pages.
"""
