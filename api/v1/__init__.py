"""The views of the orchestration API v1, one module per collection."""
