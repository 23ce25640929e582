"""Events, followers of events, webhooks and sinks."""
