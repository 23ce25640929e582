"""Local template files and their references, read into a request."""
