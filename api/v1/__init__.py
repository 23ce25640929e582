"""The views of the orchestration API v1, a module per collection."""
