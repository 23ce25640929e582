"""Names of the offers of a cloud."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from orchestrator.clients.keystone.cloud_session import Cloud
from orchestrator.clients.openstack.cloud import OpenStack
from orchestrator.clients.openstack.compute import FLAVORS
from orchestrator.clients.openstack.networking.network import NETWORKS, SUBNETS


@pytest.fixture(scope="session")
def offers(member_cloud: Cloud) -> Mapping[str, Any]:
    """Return the ids of flavors, images and the private network."""
    services = OpenStack(member_cloud, 60.0)
    flavors = {flavor["name"]: flavor["id"] for flavor in services.compute.search(FLAVORS)}
    images = {image["name"]: image["id"] for image in services.image.listed("/images", "images")}
    (network,) = services.network.search(NETWORKS, name="private")
    subnet = next(iter(services.network.search(SUBNETS, network_id=network["id"])))
    return {
        "small": flavors["m1.tiny"],
        "large": flavors["m1.small"],
        "image": images["cirros"],
        "other_image": images["fedora"],
        "network": network["id"],
        "subnet": subnet["id"],
    }
