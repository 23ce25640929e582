"""Adapters to the APIs of providers: the only place where a provider's SDK is imported.

Empty so far: the types that come with the orchestrator call nobody.
"""
