"""OpenAPI 3.1 description of the API, built from the routes and the shapes in this package.

`operation.py` defines the parts of a description, the modules named after collections describe the routes,
`document.py` combines them with the application's routes, and `views.py` serves the result. The description
has no effect on requests: the views validate and respond. Read `operation.py` first.
"""
