"""Nova's API."""

from __future__ import annotations

from typing import ClassVar

from orchestrator.clients.openstack.service_api import ServiceApi


class Compute(ServiceApi):
    """Nova, called as a credential."""

    service: ClassVar[str] = "nova"
    service_type: ClassVar[str] = "compute"
