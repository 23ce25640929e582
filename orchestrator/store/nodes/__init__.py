"""The statements of a check: claim, read, settle."""
