"""Ports that a deleted server still holds, when another server requests them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from orchestrator.errors import ProviderConflict, ProviderInUse
from orchestrator.resources.openstack.nova.server.server_type import Server

SERVER = Server()
IN_USE = {"conflictingRequest": {"message": "Port p1 is still in use.", "code": 409}}


def port(holder, age=5.0, owner="compute:nova"):
    changed = (datetime.now(UTC) - timedelta(seconds=age)).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"port": {"id": "p1", "device_id": holder, "device_owner": owner, "updated_at": changed}}


def create(context_of):
    given = {"flavor": "f1", "image": "i1", "user_data_format": "RAW", "networks": [{"port": "p1"}]}
    properties, faults = SERVER.read_properties(given)
    assert faults == []
    ctx = context_of(properties)
    return SERVER.create(ctx, ctx.properties)


def reclaim(context_of):
    data = {"networks": [{"port": "p1"}]}
    return SERVER.reclaim(context_of({}, action="RECLAIM", data=data), "s1", {})


@pytest.fixture(params=[create, reclaim])
def requested(request, cloud, context_of):
    """Return a request for a port that nova refuses."""
    cloud.answers("POST", "/servers(/s1/os-interface)?", IN_USE, status=409)
    cloud.answers("GET", "/servers/s1/os-interface", {"interfaceAttachments": []})
    return lambda: request.param(context_of)


@pytest.mark.parametrize("holder", ["gone", ""], ids=["a deleted server", "freed meanwhile"])
def test_the_request_is_repeated(cloud, requested, holder):
    cloud.answers("GET", "/ports/p1", port(holder))
    with pytest.raises(ProviderInUse, match="Port p1 is still in use"):
        requested()


def test_a_port_of_an_existing_server_is_a_final_conflict(cloud, requested):
    cloud.answers("GET", "/ports/p1", port("other"))
    cloud.answers("GET", "/servers/other", {"server": {"id": "other", "status": "ACTIVE"}})
    with pytest.raises(ProviderConflict):
        requested()


def test_a_port_of_a_router_is_a_final_conflict(cloud, requested):
    cloud.answers("GET", "/ports/p1", port("router", owner="network:router_interface"))
    with pytest.raises(ProviderConflict):
        requested()


def test_a_port_that_its_deleted_server_never_freed_is_a_final_conflict(cloud, requested):
    cloud.answers("GET", "/ports/p1", port("gone", age=300.0))
    with pytest.raises(ProviderConflict):
        requested()


def test_another_conflict_is_final(cloud, requested):
    message = {"conflictingRequest": {"message": "Instance s1 is locked", "code": 409}}
    cloud.answers("POST", "/servers(/s1/os-interface)?", message, status=409)
    with pytest.raises(ProviderConflict, match="locked"):
        requested()
    assert not cloud.sent("GET", ".*/ports/p1")
