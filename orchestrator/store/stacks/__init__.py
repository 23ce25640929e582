"""Read models of the API: stacks, resources, revisions, progress."""
