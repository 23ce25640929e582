"""Resource types: the plugin API, the registry and the built-in types.

A type communicates with a provider, or with none; it never accesses the database, a template or another
resource. Read `base.py` first, then a module of `builtin/`.
"""
