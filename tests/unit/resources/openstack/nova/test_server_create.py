"""OS::Nova::Server: the request, its repetition, and the end of a build."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta

import pytest

from orchestrator.errors import (
    AwaitingBudget,
    ProviderBusy,
    ProviderError,
    ProviderSilent,
    ProviderUnreachable,
)
from orchestrator.resources.openstack.nova.server import state
from orchestrator.resources.openstack.nova.server.server_type import Server

SERVER = Server()
TAG = "stack-orchestrator:b4a1a3f0-8f0d-4a3c-9d4c-3f6a1f2b7e10-1"


def given(**values):
    values = {"flavor": "f1", "image": "i1", "user_data_format": "RAW", **values}
    properties, faults = SERVER.read_properties(values)
    assert faults == []
    return properties


def view(status="ACTIVE", **values):
    """Nova's view of a server."""
    server = {
        "id": "s1",
        "name": "stack-thing-abcdefghijkl",
        "status": status,
        "OS-EXT-STS:task_state": None,
        "flavor": {"id": "f1"},
        "image": {"id": "i1"},
        "metadata": {},
        "tags": [TAG],
        "addresses": {"private": [{"addr": "10.0.0.4", "version": 4}], "other": [{"addr": "10.1.0.9"}]},
        "updated": "2026-01-01T00:00:00Z",
        **values,
    }
    return {"server": server}


def created(cloud, context_of, **values):
    """Create a server; return the body of the request."""
    cloud.answers("POST", "/servers", {"server": {"id": "s1"}}, status=202)
    ctx = context_of(given(**values))
    result = SERVER.create(ctx, ctx.properties)
    assert result.physical_id == "s1"
    return cloud.sent("POST", "/servers")[-1].body


def test_a_server_is_one_request_with_the_token_as_tag(cloud, context_of):
    body = created(cloud, context_of, tags=["blue"], metadata={"tier": "web", "count": 2})
    assert body == {
        "server": {
            "name": "stack-thing-abcdefghijkl",
            "flavorRef": "f1",
            "imageRef": "i1",
            "networks": "auto",
            "tags": ["blue", TAG],
            "metadata": {"tier": "web", "count": "2"},
        }
    }
    assert len(cloud.requests) == 1


def test_every_simple_property_is_part_of_the_request(cloud, context_of):
    body = created(
        cloud,
        context_of,
        name="web",
        key_name="key",
        availability_zone="az1",
        config_drive=True,
        diskConfig="MANUAL",
        admin_pass="secret",
        security_groups=["g1", "g2"],
        scheduler_hints={"group": "g"},
        personality={"/etc/motd": "hi"},
        networks=[{"network": "n1", "fixed_ip": "10.0.0.4", "tag": "front"}, {"network": "n2"}],
    )
    assert body["os:scheduler_hints"] == {"group": "g"}
    server = body["server"]
    assert server.pop("tags") == [TAG]
    assert server == {
        "name": "web",
        "flavorRef": "f1",
        "imageRef": "i1",
        "key_name": "key",
        "availability_zone": "az1",
        "config_drive": True,
        "OS-DCF:diskConfig": "MANUAL",
        "adminPass": "secret",
        "security_groups": [{"name": "g1"}, {"name": "g2"}],
        "personality": [{"path": "/etc/motd", "contents": base64.b64encode(b"hi").decode()}],
        "networks": [{"uuid": "n1", "fixed_ip": "10.0.0.4", "tag": "front"}, {"uuid": "n2"}],
    }


@pytest.mark.parametrize("allocation", ["auto", "none"])
def test_networks_may_be_allocated_by_nova(cloud, context_of, allocation):
    body = created(cloud, context_of, networks=[{"allocate_network": allocation}])
    assert body["server"]["networks"] == allocation


def test_a_project_without_networks_gets_a_server_without_an_interface(cloud, context_of):
    refusal = {"badRequest": {"message": "Unable to automatically allocate a network for project p1"}}
    cloud.answers("POST", "/servers", {"server": {"id": "s1"}}, status=202)
    cloud.answers("POST", "/servers", refusal, status=400, times=1)
    ctx = context_of(given())
    assert SERVER.create(ctx, ctx.properties).physical_id == "s1"
    assert [sent.body["server"]["networks"] for sent in cloud.sent("POST")] == ["auto", "none"]


def test_a_port_for_a_subnet_is_created_first(cloud, context_of):
    cloud.answers("GET", "/subnets/sub1", {"subnet": {"id": "sub1", "network_id": "n1"}})
    cloud.answers("POST", "/ports", {"port": {"id": "p9"}}, status=201)
    networks = [{"subnet": "sub1", "fixed_ip": "10.0.0.7"}, {"port": "p1"}]
    body = created(cloud, context_of, networks=networks)
    assert body["server"]["networks"] == [{"port": "p9"}, {"port": "p1"}]
    port = cloud.sent("POST", "/ports")[0].body["port"]
    assert port["network_id"] == "n1"
    assert port["fixed_ips"] == [{"subnet_id": "sub1", "ip_address": "10.0.0.7"}]
    assert port["name"] == "stack-thing-abcdefghijkl-port-0"


def test_further_attributes_of_a_port_are_passed_on(cloud, context_of):
    cloud.answers("POST", "/ports", {"port": {"id": "p9"}}, status=201)
    extras = {"mac_address": "fa:16:3e:00:00:01", "qos_policy": "q1", "value_specs": {"x": 1}}
    created(
        cloud,
        context_of,
        security_groups=["g1"],
        networks=[{"network": "n1", "port_extra_properties": extras}],
    )
    port = cloud.sent("POST", "/ports")[0].body["port"]
    assert port.items() >= {"mac_address": "fa:16:3e:00:00:01", "qos_policy_id": "q1", "x": 1}.items()
    assert port["security_groups"] == ["g1"]
    assert "security_groups" not in cloud.sent("POST", "/servers")[0].body["server"]


def test_a_floating_ip_is_associated_with_the_port(cloud, context_of):
    cloud.answers("POST", "/ports", {"port": {"id": "p9"}}, status=201)
    cloud.answers("PUT", "/floatingips/f1", {"floatingip": {"id": "f1"}})
    created(cloud, context_of, networks=[{"network": "n1", "floating_ip": "f1"}])
    assert cloud.sent("PUT")[0].body == {"floatingip": {"port_id": "p9"}}


def test_the_ports_of_a_refused_server_are_deleted(cloud, context_of):
    cloud.answers("POST", "/ports", {"port": {"id": "p9"}}, status=201)
    cloud.answers("DELETE", "/ports/p9", None, status=204)
    cloud.answers("POST", "/servers", {"forbidden": {"message": "Quota exceeded for instances"}}, status=403)
    ctx = context_of(given(networks=[{"network": "n1", "port_extra_properties": {}, "subnet": "sub1"}]))
    with pytest.raises(ProviderBusy, match="Quota exceeded"):
        SERVER.create(ctx, ctx.properties)
    assert cloud.sent("DELETE", "/ports/p9")


def test_a_repeated_create_uses_the_ports_of_the_earlier_attempt(cloud, context_of):
    cloud.answers("POST", "/servers", {"server": {"id": "s1"}}, status=202)
    cloud.answers("GET", r"/ports\?.*", {"ports": [{"id": "p9"}]})
    networks = [{"network": "n1", "subnet": "sub1"}]
    ctx = context_of(given(networks=networks), elapsed_seconds=30.0)
    SERVER.create(ctx, ctx.properties)
    assert not cloud.sent("POST", "/ports")
    assert cloud.sent("POST", "/servers")[0].body["server"]["networks"] == [{"port": "p9"}]


def test_a_lost_server_is_found_by_its_tag(cloud, context_of):
    listed = {"servers": [view()["server"], {"id": "s2"}]}
    cloud.answers("GET", r"/servers/detail\?.*tags=stack-orchestrator.*", listed)
    ctx = context_of(given())
    assert SERVER.find(ctx, ctx.token) == ["s1", "s2"]


def test_lost_ports_without_a_server_are_deleted_and_created_again(cloud, context_of):
    cloud.answers("GET", r"/servers/detail.*", {"servers": []})
    cloud.answers("GET", r"/ports\?.*", {"ports": [{"id": "p9"}]})
    cloud.answers("DELETE", "/ports/p9", None, status=204)
    ctx = context_of(given(networks=[{"network": "n1", "subnet": "sub1"}]))
    found = SERVER.find(ctx, ctx.token)
    observation = SERVER.observe(ctx, found)
    assert observation.replaceable
    SERVER.delete(context_of(ctx.properties, action="DELETE"), found)
    assert cloud.sent("DELETE", "/ports/p9")


def test_nothing_is_found_for_an_unknown_token(cloud, context_of):
    cloud.answers("GET", r"/servers/detail.*", {"servers": []})
    ctx = context_of(given())
    assert SERVER.find(ctx, ctx.token) is None


def test_an_outage_is_not_an_empty_search(cloud, context_of):
    cloud.answers("GET", r"/servers/detail.*", {}, status=502)
    ctx = context_of(given())
    with pytest.raises(ProviderSilent):
        SERVER.find(ctx, ctx.token)


def test_a_found_server_recovers_its_data(cloud, context_of):
    cloud.answers("GET", "/servers/s1", view())
    cloud.answers("GET", r"/ports\?.*", {"ports": [{"id": "p9"}]})
    ctx = context_of(given(networks=[{"network": "n1", "subnet": "sub1"}]))
    assert SERVER.observe(ctx, "s1").step == "recover"
    recovered = SERVER.advance(ctx, "s1", ctx.properties, "recover")
    entry = {"network": "n1", "subnet": "sub1"}
    assert recovered.data == {"ports": [{"id": "p9", "entry": entry}], "networks": [entry]}
    assert SERVER.observe(context_of(ctx.properties, data=recovered.data), "s1").ready


# The end of a build.


def observe(cloud, context_of, action="CREATE", data=None, **values):
    cloud.answers("GET", "/servers/s1", view(**values))
    return SERVER.observe(context_of(given(), action=action, data=data or {}), "s1")


@pytest.mark.parametrize("status", sorted(state.WAITING))
def test_a_build_waits_through_every_transient_status(cloud, context_of, status):
    observation = observe(cloud, context_of, status=status)
    assert (observation.ready, observation.error) == (False, "")


def test_an_active_server_is_ready_with_its_attributes(cloud, context_of):
    observation = observe(cloud, context_of, accessIPv4="192.0.2.1", tags=[TAG, "b", "a"])
    assert observation.ready
    assert observation.attributes == {
        "name": "stack-thing-abcdefghijkl",
        "networks": {"private": ["10.0.0.4"], "other": ["10.1.0.9"]},
        "first_address": "10.0.0.4",
        "instance_name": None,
        "accessIPv4": "192.0.2.1",
        "accessIPv6": None,
        "tags": ["a", "b"],
    }


def test_a_server_in_error_reports_the_fault_and_is_created_again(cloud, context_of):
    fault = {"message": "No valid host was found. ", "code": 500, "created": "2026-01-01T00:00:00Z"}
    observation = observe(cloud, context_of, status="ERROR", fault=fault)
    assert observation.error == 'Went to status ERROR due to "Message: No valid host was found. , Code: 500"'
    assert observation.replaceable


ACTIONS = {
    "instanceActions": [
        {"action": "rebuild", "request_id": "req-2", "start_time": "2026-01-02T00:00:00.000000"},
        {"action": "create", "request_id": "req-1", "start_time": "2026-01-01T00:00:00.000000"},
    ]
}


@pytest.mark.parametrize("action", ["CREATE", "UPDATE", "DELETE"])
def test_a_server_in_error_names_its_latest_request(cloud, context_of, action):
    cloud.answers("GET", "/servers/s1/os-instance-actions", ACTIONS)
    fault = {"message": "broken", "code": 500, "created": "2026-01-01T00:00:00Z"}
    observation = observe(cloud, context_of, action, status="ERROR", fault=fault)
    expected = 'Went to status ERROR due to "Message: broken, Code: 500" (Request-ID: req-2)'
    assert observation.error == expected


def test_a_server_in_error_names_no_request_without_an_answer(cloud, context_of):
    cloud.answers("GET", "/servers/s1/os-instance-actions", ProviderUnreachable("nova gives no answer"))
    assert observe(cloud, context_of, status="ERROR").error.endswith('Code: Unknown"')


def test_the_request_of_an_error_waits_for_its_turn(cloud, context_of):
    cloud.answers("GET", "/servers/s1/os-instance-actions", AwaitingBudget("nova", 1.0))
    with pytest.raises(AwaitingBudget):
        observe(cloud, context_of, status="ERROR")


def test_a_check_of_a_server_in_error_asks_for_no_request(cloud, context_of):
    observation = observe(cloud, context_of, "CHECK", status="ERROR")
    assert observation.error == 'Went to status ERROR due to "Message: Unknown, Code: Unknown"'
    assert not cloud.sent("GET", ".*os-instance-actions")


def test_an_error_with_a_task_is_not_final(cloud, context_of):
    values = {"status": "ERROR", "OS-EXT-STS:task_state": "spawning"}
    observation = observe(cloud, context_of, **values)
    assert (observation.ready, observation.error) == (False, "")


@pytest.mark.parametrize(
    ("fault", "age", "final"), [(True, 1, False), (True, 6, True), (False, 30, False), (False, 61, True)]
)
def test_a_new_error_is_observed_a_second_time(fault, age, final):
    now = datetime(2026, 1, 1, tzinfo=UTC)
    updated = (now - timedelta(seconds=age)).strftime("%Y-%m-%dT%H:%M:%SZ")
    server = view("ERROR", updated=updated, **({"fault": {"message": "m"}} if fault else {}))["server"]
    assert state.is_final_error(server, now) is final


def test_an_unknown_status_is_an_error(cloud, context_of):
    observation = observe(cloud, context_of, status="NOVEL")
    assert observation.error == 'NOVEL - Unknown status NOVEL due to "Unknown"'
    assert observation.error_kind == "ResourceUnknownStatus"


def test_an_addition_to_the_status_is_ignored(cloud, context_of):
    assert observe(cloud, context_of, status="ACTIVE(None)").ready


def test_a_missing_server_is_absent(cloud, context_of):
    assert not SERVER.observe(context_of(given()), "s1").exists


# Deletion.


def test_own_ports_and_floating_ips_end_with_the_server_but_not_the_templates_ports(cloud, context_of):
    entries = [{"subnet": "sub1"}, {"port": "p1", "floating_ip": "f1"}]
    data = {"ports": [{"id": "p9", "entry": entries[0]}], "networks": entries}
    cloud.answers("DELETE", ".*", None, status=204)
    cloud.answers("PUT", "/floatingips/f1", {"floatingip": {}})
    ctx = context_of(given(networks=entries), action="DELETE", data=data)
    SERVER.delete(ctx, "s1")
    assert cloud.sent("PUT")[0].body == {"floatingip": {"port_id": None}}
    cloud.answers("GET", "/ports/p9", {"port": {"id": "p9"}})
    assert SERVER.observe(ctx, "s1").step == "delete_ports"
    SERVER.advance(ctx, "s1", ctx.properties, "delete_ports")
    cloud.answers("GET", "/ports/p9", {}, status=404)
    assert not SERVER.observe(ctx, "s1").exists
    assert [sent.path for sent in cloud.sent("DELETE")] == ["/servers/s1", "/ports/p9"]


def test_a_repeated_deletion_of_a_missing_server_removes_its_ports(cloud, context_of):
    data = {"ports": [{"id": "p9", "entry": {"subnet": "sub1"}}]}
    cloud.answers("DELETE", "/ports/p9", None, status=204)
    SERVER.delete(context_of(given(), action="DELETE", data=data), "s1")
    assert cloud.sent("DELETE", "/ports/p9")


def test_a_deletion_without_networks_is_one_request(cloud, context_of):
    SERVER.delete(context_of(given(), action="DELETE"), "s1")
    assert [str(sent.path) for sent in cloud.requests] == ["/servers/s1"]


def test_a_server_shown_as_deleted_is_not_absent(cloud, context_of):
    observation = observe(cloud, context_of, action="DELETE", status="DELETED")
    assert (observation.exists, observation.ready) == (True, False)


def test_a_soft_deleted_server_is_absent(cloud, context_of):
    assert not observe(cloud, context_of, action="DELETE", status="SOFT_DELETED").exists


def test_a_deletion_in_error_reports_the_fault(cloud, context_of):
    values = {"status": "ERROR", "fault": {"message": "destroy failed", "code": 500}}
    assert "destroy failed" in observe(cloud, context_of, action="DELETE", **values).error
    deleting = {**values, "OS-EXT-STS:task_state": "deleting"}
    assert not observe(cloud, context_of, action="DELETE", **deleting).error


def test_a_refusal_is_final(cloud, context_of):
    cloud.answers("POST", "/servers", {"badRequest": {"message": "Invalid key_name provided."}}, status=400)
    ctx = context_of(given())
    with pytest.raises(ProviderError, match="Invalid key_name provided"):
        SERVER.create(ctx, ctx.properties)
