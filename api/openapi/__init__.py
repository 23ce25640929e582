"""The API described for programs and people: OpenAPI 3.1 made from the routes and the shapes beside them.

`operation.py` says what a description is, the modules named after collections hold one for every route,
`document.py` walks the application's routes and puts them together, `views.py` serves the result. Describing
changes nothing: what the views accept and answer is decided there. Read `operation.py` first.
"""
