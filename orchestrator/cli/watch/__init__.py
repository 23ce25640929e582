"""Progress of a running action."""
