"""The services that a caller's catalog offers, and the types that they make available."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.config import Settings
from orchestrator.errors import ResourceTypeUnavailable
from orchestrator.operations.validation.available_types import AvailableTypes
from orchestrator.operations.validation.cloud_services import services_of_caller, services_of_workers
from orchestrator.resources.base import ResourceType
from orchestrator.resources.registry import Registry
from orchestrator.security.caller import Caller
from orchestrator.security.keystone import caller_of

KEYSTONE = Settings(auth="keystone", region_name="North")


def token(*endpoints: tuple[str, str, str]) -> dict[str, Any]:
    catalog = [
        {"type": service, "endpoints": [{"interface": interface, "region_id": region, "url": "http://x"}]}
        for service, interface, region in endpoints
    ]
    return {"user": {"name": "ada", "id": "u"}, "project": {"id": "p"}, "catalog": catalog}


class Net(ResourceType):
    """Needs the network service."""

    name = "OS::Neutron::Net"
    endpoint_type = "network"


def test_a_service_is_offered_by_a_public_endpoint_in_the_region() -> None:
    caller = caller_of(
        token(
            ("network", "public", "North"),
            ("compute", "public", "South"),
            ("image", "internal", "North"),
            ("block-storage", "public", "North"),
        ),
        "t",
    )
    offers = services_of_caller(KEYSTONE, caller)
    assert {name for name in ("network", "compute", "image", "volumev3", "dns") if offers(name)} == {
        "network",
        "volumev3",
    }
    assert offers("block-storage")


def test_without_a_cloud_no_service_is_offered() -> None:
    settings = Settings()
    assert not services_of_workers(settings)("network")
    assert not services_of_caller(settings, Caller("p"))("network")


def test_a_caller_without_a_token_is_answered_by_the_services_themselves() -> None:
    assert services_of_caller(KEYSTONE, Caller("p"))("network")
    assert services_of_workers(KEYSTONE)("network")


def test_only_types_of_offered_services_are_listed_and_shown() -> None:
    types = Registry.of(Net)
    offered = AvailableTypes(types, KEYSTONE, offers="network".__eq__)
    assert (list(offered), offered["OS::Neutron::Net"]) == (["OS::Neutron::Net"], types["OS::Neutron::Net"])
    missing = AvailableTypes(types, KEYSTONE)
    assert list(missing) == []
    with pytest.raises(ResourceTypeUnavailable, match="HEAT-E99001 Service neutron is not available"):
        missing["OS::Neutron::Net"]
