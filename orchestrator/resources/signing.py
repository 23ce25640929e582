"""Deprecated: moved to `orchestrator.resources.ec2_signatures`."""

from __future__ import annotations

from orchestrator.deprecation import moved_module

__getattr__ = moved_module(__name__, "orchestrator.resources.ec2_signatures")
