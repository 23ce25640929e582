"""Designate's API: zones, and their record sets."""

from __future__ import annotations

from typing import ClassVar, Final

from orchestrator.clients.openstack.object_collections import Collection, Collections

ZONES: Final = Collection("/zones", "", "zones", update_verb="PATCH")
RECORD_SETS: Final = Collection("/zones/{parent}/recordsets", "", "recordsets")


class Dns(Collections):
    """Designate, called as a credential."""

    service: ClassVar[str] = "designate"
    service_type: ClassVar[str] = "dns"
