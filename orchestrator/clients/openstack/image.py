"""Glance's API."""

from __future__ import annotations

from typing import ClassVar

from orchestrator.clients.openstack.service_api import ServiceApi


class Image(ServiceApi):
    """Glance, called as a credential."""

    service: ClassVar[str] = "glance"
    service_type: ClassVar[str] = "image"
