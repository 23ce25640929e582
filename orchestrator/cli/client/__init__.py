"""The HTTP client: `connection.py` sends requests, one module per collection of the API says which."""
