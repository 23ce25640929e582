"""OS::Nova::Server on a cloud."""

from __future__ import annotations

import base64
from dataclasses import replace

import pytest

from orchestrator.clients.openstack.networking.network import PORTS
from orchestrator.resources.openstack.nova.server.server_type import Server


@pytest.fixture
def server(member, offers):
    """Return the id of a server with an interface in the private network."""
    return member.create(
        Server,
        {
            "flavor": offers["small"],
            "image": offers["image"],
            "networks": [{"network": offers["network"]}],
            "user_data_format": "RAW",
            "metadata": {"tier": "web"},
            "tags": ["blue"],
        },
    )


def ports_of(driver, server_id):
    return list(driver.openstack.network.search(PORTS, device_id=server_id))


def test_a_server_shows_its_attributes(member, server, offers):
    attributes = member.attributes(server, "addresses", "show")
    (address,) = attributes["networks"]["private"]
    assert attributes["first_address"] == address
    assert attributes["tags"] == ["blue"]
    (shown,) = attributes["addresses"]["private"]
    assert (shown["addr"], shown["network"]["id"]) == (address, offers["network"])
    assert shown["subnets"][0]["id"] == offers["subnet"]
    assert attributes["addresses"][offers["network"]] == [shown]
    assert attributes["show"]["id"] == server
    assert member.find(server) == [server]
    assert member.drift(server) == {}


def test_a_deleted_server_leaves_nothing(member, server):
    member.delete(server)
    assert member.openstack.compute.current_server(server) is None
    assert ports_of(member, server) == []


def test_metadata_tags_and_name_are_updated(member, server):
    member.update(server, metadata={"tier": "db"}, tags=["red"], name=f"{member.name()}")
    shown = member.attributes(server, "show")
    assert shown["show"]["metadata"] == {"tier": "db"}
    assert shown["tags"] == ["red"]
    assert shown["name"] == member.resources[server].given["name"]
    assert member.drift(server) == {}


def test_a_flavor_is_changed_by_resize_and_confirmation(member, server, offers):
    member.update(server, flavor=offers["large"])
    shown = member.attributes(server, "show")["show"]
    assert (shown["status"], shown["flavor"]["id"]) == ("ACTIVE", offers["large"])


def test_an_image_is_changed_by_a_rebuild(member, server, offers):
    member.update(server, image=offers["other_image"])
    shown = member.attributes(server, "show")["show"]
    assert (shown["status"], shown["image"]["id"]) == ("ACTIVE", offers["other_image"])


def test_networks_are_attached_and_detached(member, server, offers):
    networks = [{"network": offers["network"]}, {"subnet": offers["subnet"]}]
    member.update(server, networks=networks)
    assert len(ports_of(member, server)) == 2
    own = [port["id"] for port in member.resources[server].ctx.data["ports"]]
    member.update(server, networks=networks[:1])
    remaining = [port["id"] for port in ports_of(member, server)]
    assert len(remaining) == 1
    assert remaining != own
    assert member.openstack.network.find(PORTS, own[0]) is None


def test_an_own_port_is_deleted_with_the_server(member, offers):
    server = member.create(
        Server,
        {
            "flavor": offers["small"],
            "image": offers["image"],
            "networks": [{"subnet": offers["subnet"], "port_extra_properties": {}}],
        },
    )
    (port,) = member.resources[server].ctx.data["ports"]
    assert [found["id"] for found in ports_of(member, server)] == [port["id"]]
    member.delete(server)
    assert member.openstack.network.find(PORTS, port["id"]) is None


def test_a_server_is_suspended_resumed_and_checked(member, server):
    resource = member.resources[server]
    for action in ("SUSPEND", "RESUME"):
        resource.ctx = replace(resource.ctx, action=action)
        getattr(resource.type, action.lower())(resource.ctx, server)
        member.settle(resource)
    assert member.observe(server).ready


def test_a_server_in_error_is_recovered_by_a_reboot(member, driver, server):
    driver.openstack.compute.act(server, "os-resetState", {"state": "error"})
    assert member.observe(server).error
    resource = member.resources[server]
    resource.start("UPDATE")
    for _ in range(2):  # a second request is no error
        resource.type.recover(resource.now, server)
    member.settle(resource)
    shown = member.attributes(server, "show")["show"]
    assert (shown["id"], shown["status"]) == (server, "ACTIVE")


def test_a_port_of_the_template_moves_to_the_replacement(member, offers):
    port = member.openstack.network.create(PORTS, {"network_id": offers["network"], "name": member.name()})[
        "id"
    ]
    try:
        given = {"flavor": offers["small"], "image": offers["image"], "networks": [{"port": port}]}
        old = member.create(Server, given)
        resource = member.resources[old]
        resource.type.release(resource.ctx, old)
        resource.ctx = replace(resource.ctx, action="RELEASE")
        while not resource.type.observe(resource.ctx, old).released:
            pass
        new = member.create(Server, given)
        resource.type.release(member.resources[new].ctx, new)
        member.delete(new)
        member.request(lambda: resource.type.reclaim(resource.ctx, old, resource.ctx.properties))
        assert [found["id"] for found in ports_of(member, old)] == [port]
        member.delete(old)
        assert member.openstack.network.find(PORTS, port) is not None
    finally:
        member.openstack.network.remove(PORTS, port)


def test_user_data_reach_the_guest(driver, offers):
    given = {
        "flavor": offers["small"],
        "image": offers["image"],
        "networks": [{"network": offers["network"]}],
        "user_data_format": "RAW",
        "user_data": "#!/bin/sh\ntrue\n",
    }
    server = driver.create(Server, given)
    shown = driver.openstack.compute.current_server(server)
    assert base64.b64decode(shown["OS-EXT-SRV-ATTR:user_data"]).decode() == given["user_data"]


def test_an_unknown_flavor_is_a_fault_that_names_it(member, offers):
    with pytest.raises(AssertionError, match="no-such-flavor"):
        member.prepare(Server, {"flavor": "no-such-flavor", "image": offers["image"]})
