"""Resource types: what the plugin API is, which types there are, and those that come with the orchestrator.

A type talks to a provider or to nobody; it never sees the database, a template or another resource. Read
`base.py` first, then one of `builtin/`.
"""
