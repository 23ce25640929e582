"""Event bodies, event sinks, webhooks and their delivery."""
