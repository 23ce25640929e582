"""Resource types of Keystone. Start with `base.KeystoneType`; only administrators may use these types.

Each created object carries the request token in the attribute `orchestrator_token`, by which the object of a
lost response is found. A name is unique in its domain: a replaced object is renamed before its replacement of
the same name is created.
"""
