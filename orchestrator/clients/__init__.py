"""Clients of external services: the only package that imports a provider's SDK.

Every call has its own deadline. Read `url_fetcher.py` first: it fetches URLs from templates, and so trusts no
input. A resource type that calls the cloud starts with `keystone/cloud_session.py`.
"""
