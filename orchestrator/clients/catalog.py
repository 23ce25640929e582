"""Deprecated: moved to `orchestrator.clients.region_catalog`."""

from __future__ import annotations

from orchestrator.deprecation import moved_module

__getattr__ = moved_module(__name__, "orchestrator.clients.region_catalog")
