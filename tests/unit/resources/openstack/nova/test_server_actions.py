"""OS::Nova::Server: suspension, health, snapshots, the release of ports to a replacement, live attributes."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from orchestrator.errors import ProviderBusy, ProviderConflict
from orchestrator.resources.openstack.nova.server.server_type import Server

SERVER = Server()
TAG = "stack-orchestrator:b4a1a3f0-8f0d-4a3c-9d4c-3f6a1f2b7e10-1"


def given(**values):
    properties, faults = SERVER.read_properties(
        {"flavor": "f1", "image": "i1", "user_data_format": "RAW", **values}
    )
    assert faults == []
    return properties


def serve(cloud, status="ACTIVE", task=None, **values):
    """Answer reads of the server."""
    server = {
        "id": "s1",
        "name": "web",
        "status": status,
        "OS-EXT-STS:task_state": task,
        "flavor": {"id": "f1"},
        "image": {"id": "i1"},
        "metadata": {},
        "tags": [TAG],
        "addresses": {},
        **values,
    }
    cloud.answers("GET", "/servers/s1", {"server": server})


def interface(port, network="n1", *addresses):
    return {"port_id": port, "net_id": network, "fixed_ips": [{"ip_address": text} for text in addresses]}


# Suspension, check, health.


@pytest.mark.parametrize(("action", "target"), [("suspend", "SUSPENDED"), ("resume", "ACTIVE")])
def test_suspension_and_resumption_are_observed(cloud, context_of, action, target):
    cloud.answers("POST", "/servers/s1/action", None, status=202)
    ctx = context_of(given(), action=action.upper())
    getattr(SERVER, action)(ctx, "s1")
    assert cloud.sent("POST")[0].body == {action: None}
    serve(cloud, "ACTIVE" if action == "suspend" else "SUSPENDED", "working")
    assert not SERVER.observe(ctx, "s1").ready
    serve(cloud, target)
    assert SERVER.observe(ctx, "s1").ready


@pytest.mark.parametrize("action", ["SUSPEND", "RESUME"])
def test_a_server_in_error_fails_its_action_at_once_unless_nova_works_on_it(cloud, context_of, action):
    ctx = context_of(given(), action=action)
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    serve(cloud, "ERROR", "rebooting", updated=now)
    assert (SERVER.observe(ctx, "s1").ready, SERVER.observe(ctx, "s1").error) == (False, "")
    serve(cloud, "ERROR", updated=now)
    assert "Went to status ERROR" in SERVER.observe(ctx, "s1").error


def test_a_suspended_server_is_suspended_without_error(cloud, context_of):
    cloud.answers("POST", "/servers/s1/action", {"conflictingRequest": {"message": "no"}}, status=409)
    serve(cloud, "SUSPENDED")
    SERVER.suspend(context_of(given(), action="SUSPEND"), "s1")
    serve(cloud, "ACTIVE")
    with pytest.raises(ProviderConflict):
        SERVER.suspend(context_of(given(), action="SUSPEND"), "s1")


def test_a_check_requires_an_active_server(cloud, context_of):
    serve(cloud, "SHUTOFF")
    observation = SERVER.observe(context_of(given(), action="CHECK"), "s1")
    assert (observation.ready, observation.reason) == (False, "'status': expected 'ACTIVE', got 'SHUTOFF'")


@pytest.mark.parametrize(
    ("status", "healthy"), [("ACTIVE", True), ("SHUTOFF", True), ("ERROR", False), ("DELETED", False)]
)
def test_a_failed_server_is_kept_unless_it_is_in_error_or_deleted(cloud, context_of, status, healthy):
    serve(cloud, status)
    assert SERVER.is_healthy_after_failure(context_of(given()), "s1") is healthy


def test_a_server_in_construction_is_neither_kept_nor_replaced(cloud, context_of):
    serve(cloud, "BUILD", "spawning")
    with pytest.raises(ProviderBusy, match="server is BUILD"):
        SERVER.is_healthy_after_failure(context_of(given()), "s1")


# Snapshots.


def test_a_snapshot_is_one_image_for_all_attempts(cloud, context_of):
    ctx = context_of(given(), action="SNAPSHOT", token="r1-s5")
    cloud.answers("GET", r"/images\?.*", {"images": []})
    cloud.answers("POST", "/servers/s1/action", {"image_id": "im1"}, status=202)
    assert SERVER.snapshot(ctx, "s1") == {"snapshot_image_id": "im1"}
    assert cloud.sent("POST")[0].body["createImage"]["metadata"] == {"stack_orchestrator_token": "r1-s5"}
    serve(cloud)
    for status, ready in (("queued", False), ("saving", False), ("active", True)):
        cloud.answers("GET", r"/images\?.*", {"images": [{"id": "im1", "status": status}]})
        assert SERVER.observe(ctx, "s1").ready is ready
    assert SERVER.snapshot(ctx, "s1") == {"snapshot_image_id": "im1"}
    assert len(cloud.sent("POST")) == 1


def test_a_lost_snapshot_is_an_error(cloud, context_of):
    serve(cloud)
    cloud.answers("GET", r"/images\?.*", {"images": []})
    assert SERVER.observe(context_of(given(), action="SNAPSHOT"), "s1").error


def test_a_snapshot_is_restored_as_image_and_deleted(cloud, context_of):
    snapshot = {"snapshot_image_id": "im1"}
    assert SERVER.restored({"flavor": "f1", "image": "i1"}, snapshot) == {"flavor": "f1", "image": "im1"}
    cloud.answers("DELETE", "/images/im1", None, status=204)
    SERVER.delete_snapshot(context_of(), snapshot)
    assert cloud.sent("DELETE", "/images/im1")


# Replacement.


def test_a_replaced_server_gives_up_ports_and_addresses_and_regains_them(cloud, context_of):
    own = {"network": "n1", "subnet": "sub1", "fixed_ip": "10.0.0.9"}
    entries = [{"port": "p1"}, {"network": "n1", "fixed_ip": "10.0.0.7"}, {"network": "n2"}, own]
    data = {"networks": entries, "ports": [{"id": "p9", "entry": own}]}
    attached = [
        interface("p1", "n0", "10.9.0.2"),
        interface("pa", "n1", "10.0.0.7"),
        interface("pb", "n2", "10.2.0.7"),
        interface("p9", "n1", "10.0.0.9"),
    ]
    ctx = context_of(given(networks=entries), action="RELEASE", data=data)
    serve(cloud)
    cloud.answers("GET", "/servers/s1/os-interface", {"interfaceAttachments": attached})
    cloud.answers("DELETE", ".*", None, status=202)
    cloud.answers("PUT", "/ports/p9", {"port": {}})
    SERVER.release(ctx, "s1")
    assert [sent.path.rpartition("/")[2] for sent in cloud.sent("DELETE")] == ["p1", "pa"]
    assert cloud.sent("PUT")[-1].body == {"port": {"fixed_ips": []}}
    assert not SERVER.observe(ctx, "s1").released
    cloud.answers("GET", "/servers/s1/os-interface", {"interfaceAttachments": attached[2:]})
    assert SERVER.observe(ctx, "s1").released
    cloud.answers("POST", "/servers/s1/os-interface", {"interfaceAttachment": {}})
    SERVER.reclaim(ctx, "s1", ctx.properties)
    assert [sent.body["interfaceAttachment"] for sent in cloud.sent("POST")] == [
        {"port_id": "p1"},
        {"net_id": "n1", "fixed_ips": [{"ip_address": "10.0.0.7"}]},
    ]
    restored = {"fixed_ips": [{"ip_address": "10.0.0.9", "subnet_id": "sub1"}]}
    assert cloud.sent("PUT")[-1].body == {"port": restored}


@pytest.mark.parametrize(("status", "task"), [("BUILD", None), ("ACTIVE", "rebuilding")])
def test_a_server_with_a_task_in_progress_releases_its_ports_at_its_end(cloud, context_of, status, task):
    ctx = context_of(given(networks=[{"port": "p1"}]), action="RELEASE")
    serve(cloud, status, task)
    cloud.answers("GET", "/servers/s1/os-interface", {"interfaceAttachments": []})
    SERVER.release(ctx, "s1")
    seen = SERVER.observe(ctx, "s1")
    assert not seen.released
    assert status in seen.reason
    assert cloud.sent("DELETE") == []
    serve(cloud)
    cloud.answers("GET", "/servers/s1/os-interface", {"interfaceAttachments": [interface("p1")]})
    cloud.answers("DELETE", ".*", None, status=202)
    SERVER.release(ctx, "s1")
    assert cloud.sent("DELETE", "/servers/s1/os-interface/p1")


def test_a_server_that_nova_does_not_detach_from_is_an_error(cloud, context_of):
    serve(cloud, "RESCUE")
    cloud.answers("GET", "/servers/s1/os-interface", {"interfaceAttachments": [interface("p1")]})
    cloud.answers("DELETE", ".*", {"conflictingRequest": {"message": "vm_state rescued"}}, status=409)
    with pytest.raises(ProviderConflict, match="rescued"):
        SERVER.release(context_of(given(networks=[{"port": "p1"}]), action="RELEASE"), "s1")


# Live attributes.


def test_addresses_name_their_port_subnets_and_network(cloud, context_of):
    address = {"addr": "10.0.0.4", "version": 4, "OS-EXT-IPS-MAC:mac_addr": "fa:16:3e:1:2:3"}
    serve(cloud, addresses={"private": [address]})
    port = {
        "id": "p1",
        "mac_address": "fa:16:3e:1:2:3",
        "network_id": "n1",
        "fixed_ips": [{"subnet_id": "sub1"}],
    }
    cloud.answers("GET", r"/ports\?.*", {"ports": [port]})
    cloud.answers("GET", "/subnets/sub1", {"subnet": {"id": "sub1"}})
    cloud.answers("GET", "/networks/n1", {"network": {"id": "n1"}})
    shown = SERVER.read_attributes(context_of(given()), "s1", frozenset({"addresses"}))["addresses"]
    expected = {**address, "port": "p1", "subnets": [{"id": "sub1"}], "network": {"id": "n1"}}
    assert shown == {"private": [expected], "n1": [expected]}


def test_a_console_that_is_not_available_shows_the_reason(cloud, context_of):
    cloud.answers("POST", ".*/remote-consoles", {"badRequest": {"message": "type is disabled"}}, status=400)
    answer = {"remote_console": {"url": "http://vnc"}}
    cloud.answers("POST", ".*/remote-consoles", answer, times=1)
    urls = SERVER.read_attributes(context_of(given()), "s1", frozenset({"console_urls"}))["console_urls"]
    assert urls["novnc"] == "http://vnc"
    assert "type is disabled" in urls["serial"]
