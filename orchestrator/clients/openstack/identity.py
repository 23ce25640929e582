"""Keystone's API."""

from __future__ import annotations

from typing import ClassVar

from orchestrator.clients.openstack.service_api import ServiceApi


class Identity(ServiceApi):
    """Keystone, called as a credential."""

    service: ClassVar[str] = "keystone"
    service_type: ClassVar[str] = "identity"
