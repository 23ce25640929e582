"""What a server that is being built shows to dependents that need no more (operations/adr/0015)."""

from __future__ import annotations

import pytest

from orchestrator.resources.openstack.nova.server.server_type import Server

SERVER = Server()
BUILDING = {
    "id": "s1",
    "name": "stack-thing-abcdefghijkl",
    "status": "BUILD",
    "OS-EXT-STS:task_state": "spawning",
    "flavor": {"id": "f1"},
    "image": {"id": "i1"},
    "metadata": {},
    "tags": [],
    "addresses": {},
    "updated": "2026-01-01T00:00:00Z",
}


def read(properties):
    given = {"flavor": "f1", "image": "i1", "user_data_format": "RAW", **properties}
    values, faults = SERVER.read_properties(given)
    assert faults == []
    return values


def observed(cloud, context_of, *, addresses=("10.0.0.9",), pending=True, data=None, **properties):
    cloud.answers("GET", "/servers/s1", {"server": BUILDING})
    fixed = [{"ip_address": address, "subnet_id": "n"} for address in addresses]
    cloud.answers("GET", "/ports/p1", {"port": {"id": "p1", "fixed_ips": fixed}})
    ctx = context_of(read(properties), early_pending=pending, data=data or {})
    observation = SERVER.observe(ctx, "s1")
    assert not observation.ready
    return observation.attributes


def test_they_include_the_address_of_the_first_port(cloud, context_of):
    attributes = observed(cloud, context_of, networks=[{"port": "p1"}, {"network": "n2"}])
    assert attributes.keys() >= SERVER.early_attributes
    assert attributes["first_address"] == "10.0.0.9"


def test_they_include_the_address_of_an_own_port(cloud, context_of):
    entry = {"subnet": "x"}
    data = {"ports": [{"id": "p1", "entry": entry}]}
    assert observed(cloud, context_of, networks=[entry], data=data)["first_address"] == "10.0.0.9"


@pytest.mark.parametrize("networks", [None, [{"network": "n"}], [{"network": "n"}, {"port": "p1"}]])
def test_an_address_that_nova_selects_is_not_known_yet(cloud, context_of, networks):
    values = {"networks": networks} if networks else {}
    attributes = observed(cloud, context_of, **values)
    assert "first_address" not in attributes
    assert attributes["name"] == "stack-thing-abcdefghijkl"


def test_the_first_of_several_addresses_is_not_known_yet(cloud, context_of):
    attributes = observed(cloud, context_of, addresses=("10.0.0.9", "fd00::1"), networks=[{"port": "p1"}])
    assert "first_address" not in attributes


def test_the_port_is_read_only_if_dependents_wait(cloud, context_of):
    observed(cloud, context_of, networks=[{"port": "p1"}], pending=False)
    assert cloud.sent("GET", "/ports.*") == []


def test_the_answer_of_the_create_shows_them(cloud, context_of):
    cloud.answers("POST", "/servers", {"server": {"id": "s1"}}, status=202)
    fixed = [{"ip_address": "10.0.0.9", "subnet_id": "n"}]
    cloud.answers("GET", "/ports/p1", {"port": {"id": "p1", "fixed_ips": fixed}})
    ctx = context_of(read({"networks": [{"port": "p1"}]}), early_pending=True)
    seen = SERVER.create(ctx, ctx.properties).observation
    assert seen is not None
    assert not seen.ready
    assert seen.attributes == {"name": "stack-thing-abcdefghijkl", "first_address": "10.0.0.9"}


def test_a_network_service_that_does_not_answer_fails_no_server(cloud, context_of):
    cloud.answers("POST", "/servers", {"server": {"id": "s1"}}, status=202)
    cloud.answers("GET", "/ports/p1", {}, status=503)
    ctx = context_of(read({"networks": [{"port": "p1"}]}), early_pending=True)
    created = SERVER.create(ctx, ctx.properties)
    assert created.physical_id == "s1"
    assert created.observation is not None
    assert "first_address" not in created.observation.attributes
