"""The service."""

from __future__ import annotations

from typing import ClassVar

from orchestrator.simulated.service import Service


class Nova(Service):
    """Not simulated yet."""

    name: ClassVar[str] = "nova"
    port_offset: ClassVar[int] = 3
