"""OS::Nova::Server: updates step by step, and the kind of each change."""

from __future__ import annotations

import base64

import pytest

from orchestrator.resources.openstack.nova.server.interfaces import changes
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


class Update:
    """An update as the engine runs it: request, then observe and advance until it is complete."""

    def __init__(self, cloud, context_of, props, data=None):
        self.cloud, self.context_of, self.props, self.data = cloud, context_of, props, data or {}
        cloud.answers("POST", r"/servers/s1/action", None, status=202)

    @property
    def ctx(self):
        return self.context_of(self.props, action="UPDATE", data=self.data)

    def request(self, *changed):
        self.data = SERVER.update(self.ctx, "s1", self.props, frozenset(changed)).data

    def observe(self):
        return SERVER.observe(self.ctx, "s1")

    def step(self, name):
        assert self.observe().step == name
        self.data = SERVER.advance(self.ctx, "s1", self.props, name).data

    @property
    def actions(self):
        return [sent.body for sent in self.cloud.sent("POST", "/servers/s1/action")]


def test_metadata_tags_and_the_name_are_changed_at_once(cloud, context_of):
    cloud.answers("PUT", "/servers/s1.*", {})
    serve(cloud)
    update = Update(cloud, context_of, given(name="web2", metadata={"a": 1}, tags=["t"]))
    update.request("name", "metadata", "tags")
    assert {sent.path: sent.body for sent in cloud.sent("PUT")} == {
        "/servers/s1/metadata": {"metadata": {"a": "1"}},
        "/servers/s1/tags": {"tags": ["t", TAG]},
        "/servers/s1": {"server": {"name": "web2"}},
    }
    assert update.observe().ready


def test_the_password_is_changed_by_an_action(cloud, context_of):
    serve(cloud)
    update = Update(cloud, context_of, given(admin_pass="new"))
    update.request("admin_pass")
    assert update.actions == [{"changePassword": {"adminPass": "new"}}]


def test_a_resize_is_confirmed(cloud, context_of):
    update = Update(cloud, context_of, given(flavor="f2"))
    serve(cloud)
    update.request("flavor")
    update.step("resize")
    serve(cloud, "RESIZE", "resize_migrating")
    assert not update.observe().ready
    serve(cloud, "VERIFY_RESIZE", flavor={"id": "f2"})
    update.step("confirm_resize")
    serve(cloud, "ACTIVE", flavor={"id": "f2"})
    assert update.observe().ready
    assert update.actions == [{"resize": {"flavorRef": "f2"}}, {"confirmResize": None}]


def test_a_repeated_resize_step_requests_nothing_while_nova_works(cloud, context_of):
    update = Update(cloud, context_of, given(flavor="f2"))
    serve(cloud)
    update.request("flavor")
    serve(cloud, "RESIZE", "resize_prep")
    SERVER.advance(update.ctx, "s1", update.props, "resize")
    serve(cloud, "VERIFY_RESIZE", "confirming")
    SERVER.advance(update.ctx, "s1", update.props, "confirm_resize")
    assert update.actions == []


def test_a_resize_without_effect_is_an_error(cloud, context_of):
    update = Update(cloud, context_of, given(flavor="f2"))
    serve(cloud)
    update.request("flavor")
    update.step("resize")
    assert update.observe().error == "Resizing to 'f2' failed, status 'ACTIVE'"


def test_an_image_is_changed_by_a_rebuild(cloud, context_of):
    props = given(image="i2", image_update_policy="REBUILD_PRESERVE_EPHEMERAL", admin_pass="pw", name="web")
    update = Update(cloud, context_of, props)
    serve(cloud)
    update.request("image")
    update.step("rebuild")
    serve(cloud, "REBUILD", "rebuilding", image={"id": "i2"})
    assert not update.observe().ready
    serve(cloud, image={"id": "i2"})
    assert update.observe().ready
    arguments = {"imageRef": "i2", "name": "web", "adminPass": "pw", "preserve_ephemeral": True}
    assert update.actions == [{"rebuild": arguments}]


def test_user_data_may_be_changed_by_a_rebuild(cloud, context_of):
    update = Update(cloud, context_of, given(user_data="new", user_data_update_policy="REBUILD", name="web"))
    serve(cloud)
    update.request("user_data")
    update.step("rebuild")
    assert update.observe().ready
    encoded = base64.b64encode(b"new").decode()
    assert update.actions == [{"rebuild": {"imageRef": "i1", "name": "web", "user_data": encoded}}]
    assert cloud.sent("POST")[0].microversion == "2.57"


def test_ignored_user_data_change_nothing(cloud, context_of):
    update = Update(cloud, context_of, given(user_data="new", user_data_update_policy="IGNORE"))
    serve(cloud)
    update.request("user_data")
    assert update.observe().ready
    assert update.actions == []


def test_networks_are_detached_then_attached(cloud, context_of):
    data = {"networks": [{"port": "p1"}, {"network": "n1"}], "ports": []}
    update = Update(cloud, context_of, given(networks=[{"network": "n1"}, {"port": "p2", "tag": "t"}]), data)
    serve(cloud)
    cloud.answers(
        "GET", "/servers/s1/os-interface", {"interfaceAttachments": [interface("p1"), interface("px")]}
    )
    update.request("networks")
    assert (update.data["detach"], update.data["attach"]) == (["p1"], [{"port": "p2", "tag": "t"}])
    cloud.answers("DELETE", "/servers/s1/os-interface/p1", None, status=202)
    update.step("detach_interfaces")
    assert update.observe().step == ""  # still attached
    cloud.answers("GET", "/servers/s1/os-interface", {"interfaceAttachments": [interface("px")]})
    cloud.answers("POST", "/servers/s1/os-interface", {"interfaceAttachment": {"port_id": "p2"}})
    update.step("attach_interfaces")
    assert update.observe().ready
    assert [sent.body for sent in cloud.sent("POST", "/servers/s1/os-interface")] == [
        {"interfaceAttachment": {"port_id": "p2", "tag": "t"}}
    ]


def test_a_detached_own_port_is_deleted_and_a_new_one_created(cloud, context_of):
    old, new = {"network": "n1", "subnet": "sub1"}, {"network": "n2", "subnet": "sub2"}
    data = {"networks": [old], "ports": [{"id": "p8", "entry": old}]}
    update = Update(cloud, context_of, given(networks=[new]), data)
    serve(cloud)
    cloud.answers("GET", "/servers/s1/os-interface", {"interfaceAttachments": [interface("p8")]})
    cloud.answers("DELETE", ".*", None, status=202)
    update.request("networks")
    update.step("detach_interfaces")
    cloud.answers("GET", "/servers/s1/os-interface", {"interfaceAttachments": []})
    cloud.answers("GET", r"/ports\?.*", {"ports": []})
    cloud.answers("POST", "/ports", {"port": {"id": "p9"}}, status=201)
    cloud.answers("POST", "/servers/s1/os-interface", {"interfaceAttachment": {"port_id": "p9"}})
    update.step("attach_interfaces")
    assert update.data["ports"] == [{"id": "p9", "entry": new}]
    assert cloud.sent("DELETE", "/ports/p8")


def test_a_repeated_attach_step_attaches_once(cloud, context_of):
    data = {"networks": [{"port": "p1"}], "ports": []}
    update = Update(cloud, context_of, given(networks=[{"port": "p1"}, {"port": "p2"}]), data)
    serve(cloud)
    cloud.answers("GET", "/servers/s1/os-interface", {"interfaceAttachments": [interface("p1")]})
    update.request("networks")
    cloud.answers(
        "GET", "/servers/s1/os-interface", {"interfaceAttachments": [interface("p1"), interface("p2")]}
    )
    SERVER.advance(update.ctx, "s1", update.props, "attach_interfaces")
    assert not cloud.sent("POST", "/servers/s1/os-interface")


def test_an_interface_that_no_entry_describes_is_left_alone(cloud, context_of):
    data = {"networks": [{"port": "p1"}], "ports": []}
    update = Update(cloud, context_of, given(networks=[{"port": "p2"}]), data)
    serve(cloud)
    attached = [interface("p1"), interface("foreign", "n7")]
    cloud.answers("GET", "/servers/s1/os-interface", {"interfaceAttachments": attached})
    update.request("networks")
    assert update.data["detach"] == ["p1"]


def test_an_interrupted_update_still_detaches(cloud, context_of):
    data = {"networks": [{"port": "p2"}], "ports": [], "detach": ["p1"], "attach": []}
    update = Update(cloud, context_of, given(networks=[{"port": "p2"}]), data)
    serve(cloud)
    attached = [interface("p1"), interface("p2")]
    cloud.answers("GET", "/servers/s1/os-interface", {"interfaceAttachments": attached})
    update.request("networks")
    assert update.data["detach"] == ["p1"]


def test_a_failed_update_reports_the_fault_and_keeps_the_server(cloud, context_of):
    update = Update(cloud, context_of, given())
    serve(cloud, "ERROR", fault={"message": "rebuild failed", "code": 500}, updated="2026-01-01T00:00:00Z")
    observation = update.observe()
    assert "rebuild failed" in observation.error
    assert not observation.replaceable


# The kind of a change.


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        ({}, {"flavor": "f2"}, "update"),
        ({}, {"flavor": "f2", "flavor_update_policy": "REPLACE"}, "replace"),
        ({}, {"image": "i2"}, "update"),
        ({}, {"image": "i2", "image_update_policy": "REPLACE"}, "replace"),
        ({"image": ""}, {"image": "i2"}, "replace"),
        ({}, {"user_data": "x"}, "replace"),
        ({}, {"user_data": "x", "user_data_update_policy": "IGNORE"}, "update"),
        ({}, {"user_data": "x", "user_data_update_policy": "REBUILD"}, "update"),
        ({}, {"key_name": "k"}, "replace"),
        ({}, {"networks": [{"network": "n2"}]}, "update"),
        ({}, {}, "keep"),
    ],
)
def test_policies_decide_between_update_and_replacement(before, after, change):
    old, new = given(**before), given(**after)
    changed = frozenset(name for name in {*old, *new} if old.get(name) != new.get(name))
    assert SERVER.change(old, new, changed) == change


def test_metadata_are_equal_as_nova_stores_them():
    assert SERVER.equal("metadata", {"a": 1}, {"a": "1"})
    assert SERVER.equal("tags", ["b", "a"], ["a", "b"])


def test_actual_values_are_reported_for_drift(cloud, context_of):
    serve(cloud, name="renamed", metadata={"a": "1"}, flavor={"id": "f9"}, tags=[TAG, "t"])
    actual = SERVER.observe(context_of(given(tags=["t"]), action="CHECK"), "s1").properties
    assert actual == {"name": "renamed", "metadata": {"a": "1"}, "flavor": "f9", "tags": ["t"]}


def test_the_network_of_a_subnet_changes_no_interface():
    before, after = [{"subnet": "s"}], [{"network": "n1", "subnet": "s"}]
    own_ports = [{"id": "p1", "entry": before[0]}]
    assert changes(before, after, own_ports, [interface("p1")])[:2] == ([], [])
    assert changes(after, before, own_ports, [interface("p1")])[:2] == ([], [])


def placed(port, subnet, address):
    return {"port_id": port, "net_id": "n1", "fixed_ips": [{"subnet_id": subnet, "ip_address": address}]}


@pytest.mark.parametrize(
    "entry",
    [
        {"network": "n1", "subnet": "s"},
        {"network": "n1", "fixed_ip": "192.0.2.7"},
        {"subnet": "s"},
        {"port": "p1"},
    ],
)
def test_a_port_that_an_entry_describes_in_other_words_stays(entry):
    attached = [placed("p1", "s", "192.0.2.7")]
    detach, attach, own = changes([{"network": "n1"}], [entry], [], attached)
    assert (detach, attach) == ([], [])
    assert changes([entry], [entry], own, attached)[:2] == ([], [])  # the next update knows it


@pytest.mark.parametrize(
    "entry",
    [
        {"network": "n1", "subnet": "other"},
        {"network": "n1", "fixed_ip": "192.0.2.8"},
        {"network": "n2"},
        {"network": "n1", "tag": "t"},
        {"port": "p2"},
    ],
)
def test_a_port_that_does_not_serve_the_new_entry_is_replaced(entry):
    attached = [placed("p1", "s", "192.0.2.7")]
    detach, attach, _ = changes([{"network": "n1"}], [entry], [], attached)
    assert (detach, attach) == (["p1"], [entry])


def test_ports_serve_entries_in_another_order():
    before = [{"network": "n1"}, {"network": "n1", "fixed_ip": "192.0.2.9"}, {"subnet": "s"}]
    after = [{"subnet": "s"}, {"network": "n1"}, {"network": "n1", "subnet": "s"}]
    own = [{"id": "p3", "entry": before[2]}]
    attached = [placed(f"p{n}", "s", f"192.0.2.{address}") for n, address in ((1, 7), (2, 9), (3, 8))]
    assert changes(before, after, own, attached)[:2] == ([], [])
