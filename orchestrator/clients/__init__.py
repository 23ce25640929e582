"""Adapters to the services of others: the only package that imports a provider's SDK.

Every call has its own deadline. Read `url_fetcher.py` first: it fetches addresses named by templates, and so
trusts no input. A type that calls the cloud starts with `keystone/cloud_session.py`.
"""
