"""Stack-level transitions: accept a request, start and complete a traversal."""
