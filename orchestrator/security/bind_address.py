"""Addresses that the API may listen on: without authentication, only the loopback address."""

from __future__ import annotations

from orchestrator.config import Settings
from orchestrator.errors import Misconfigured


def require_safe_binding(settings: Settings) -> None:
    """Check that the API may be bound to `settings.host`.

    Raises:
        Misconfigured: other machines could call it without authentication.
    """
    if settings.auth == "none" and not settings.loopback:
        raise Misconfigured(
            f"refusing to listen on {settings.host} while ORCHESTRATOR_AUTH is none: "
            "any caller could do anything. Set ORCHESTRATOR_AUTH=token "
            "(`orchestrator token create` makes one), basic or keystone, or listen on 127.0.0.1"
        )
