"""The view of stack and resource that a resource type works with."""
