"""Deprecated: moved to `orchestrator.template.hot_formats`."""

from __future__ import annotations

from orchestrator.deprecation import moved_module

__getattr__ = moved_module(__name__, "orchestrator.template.hot_formats")
