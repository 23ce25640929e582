"""Cinder's API."""

from __future__ import annotations

from typing import ClassVar

from orchestrator.clients.openstack.service_api import ServiceApi


class BlockStorage(ServiceApi):
    """Cinder, called as a credential."""

    service: ClassVar[str] = "cinder"
    service_type: ClassVar[str] = "block-storage"
