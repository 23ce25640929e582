"""Deprecated: moved to `orchestrator.template.cfn_formats`."""

from __future__ import annotations

from orchestrator.deprecation import moved_module

__getattr__ = moved_module(__name__, "orchestrator.template.cfn_formats")
