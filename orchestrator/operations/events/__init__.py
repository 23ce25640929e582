"""Event bodies, event sinks, webhooks and their delivery.

`webhook_delivery.py` delivers and retries, with a pause and a maximum of attempts; `webhooks.py` has the
requests of the API.
"""
