"""Instances for load balancers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from orchestrator.clients.keystone.cloud_session import Cloud
from orchestrator.clients.openstack.cloud import OpenStack
from orchestrator.clients.openstack.compute import FLAVORS
from orchestrator.clients.openstack.networking.network import NETWORKS


@pytest.fixture(scope="session")
def offers(member_cloud: Cloud) -> Mapping[str, Any]:
    """Return the ids of a flavor, an image and the private network."""
    services = OpenStack(member_cloud, 60.0)
    flavors = {flavor["name"]: flavor["id"] for flavor in services.compute.search(FLAVORS)}
    images = {image["name"]: image["id"] for image in services.image.listed("/images", "images")}
    (network,) = services.network.search(NETWORKS, name="private")
    return {"small": flavors["m1.tiny"], "image": images["cirros"], "network": network["id"]}
