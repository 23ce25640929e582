"""Where the API may listen: without a way to know its callers, only where no other machine can call."""

from __future__ import annotations

from orchestrator.config import Settings
from orchestrator.errors import Misconfigured


def require_safe_binding(settings: Settings) -> None:
    """Return when the API may be bound to `settings.host`.

    Raises:
        Misconfigured: other machines could call it and nobody would ask who they are.
    """
    if settings.auth == "none" and not settings.loopback:
        raise Misconfigured(
            f"refusing to listen on {settings.host} while ORCHESTRATOR_AUTH is none: "
            "any caller could do anything. Set ORCHESTRATOR_AUTH=token "
            "(`orchestrator token create` makes one), basic or keystone, or listen on 127.0.0.1"
        )
