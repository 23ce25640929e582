"""Adapters to what others serve: the only place where a provider's SDK is imported.

Every call has a deadline of its own. `fetch.py` is the one to read first: it goes where templates say, and so
must trust nobody. A type that calls the cloud begins with `cloud.py`.
"""
