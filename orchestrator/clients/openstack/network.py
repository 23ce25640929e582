"""Neutron's API."""

from __future__ import annotations

from typing import ClassVar

from orchestrator.clients.openstack.service_api import ServiceApi


class Network(ServiceApi):
    """Neutron, called as a credential."""

    service: ClassVar[str] = "neutron"
    service_type: ClassVar[str] = "network"
