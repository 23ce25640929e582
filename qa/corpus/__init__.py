"""Real templates against a running server: `make corpus`. Not part of the test suite: the templates are data
next to the repository.
"""
