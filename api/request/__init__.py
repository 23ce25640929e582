"""Parsing of requests: body, query parameters, stack lookup."""
