"""Real templates against a running server: `make corpus`. Not part of the test suite: the templates are data
that lives beside the repository.
"""
