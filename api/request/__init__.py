"""Reading of requests: body, query parameters, stack lookup."""
