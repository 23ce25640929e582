"""Deprecated: moved to `orchestrator.clients.keystone.cloud_session`."""

from __future__ import annotations

from orchestrator.deprecation import moved_module

__getattr__ = moved_module(__name__, "orchestrator.clients.keystone.cloud_session")
