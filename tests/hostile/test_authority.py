"""A member of a project tries to run content with the rights of its administrator (docs/security.md)."""

# ruff: noqa: F811 - fixtures are imported
from __future__ import annotations

import contextlib
from typing import Any, Final

import pytest

from orchestrator.errors import Forbidden, Unavailable
from orchestrator.operations.outputs.live_attributes import read_for_resource
from orchestrator.store.stacks.resources import get_resource
from tests.hostile.authority_world import (  # noqa: F401 - fixtures
    MALLORY,
    READER,
    Authority,
    attacked,
    kept_authority,
)

HARMLESS: Final[dict[str, Any]] = {"a": {"type": "OS::Heat::Value", "properties": {"value": 1}}}
SHARED: Final = {"type": "OS::Neutron::Net", "properties": {"name": "trap", "shared": True}}
TRAP: Final[dict[str, Any]] = {**HARMLESS, "net": SHARED}
GROUP: Final[dict[str, Any]] = {
    "group": {
        "type": "OS::Heat::AutoScalingGroup",
        "properties": {"min_size": 0, "desired_capacity": 0, "max_size": 1, "resource": SHARED},
    },
    "policy": {
        "type": "OS::Heat::ScalingPolicy",
        "properties": {
            "adjustment_type": "change_in_capacity",
            "auto_scaling_group_id": {"get_resource": "group"},
            "scaling_adjustment": 1,
        },
    },
}


def made(world: Authority, user: str, resources: dict[str, Any] = HARMLESS) -> str:
    """Create the stack as a user."""
    world.call_as(user)
    uuid = world.create("s", resources)
    world.deliver_all()
    return uuid


def revisions(world: Authority) -> int:
    return len(world.rows("SELECT 1 FROM revision"))


def test_the_trap_needs_the_rights_of_an_administrator(attacked: Authority) -> None:
    uuid = made(attacked, MALLORY, TRAP)
    assert attacked.state(uuid) == "CREATE_FAILED"
    attacked.call_as("admin")
    attacked.update("s", TRAP)
    attacked.deliver_all()
    assert attacked.shared_networks() == ["trap"]
    attacked.delete("s")
    attacked.deliver_all()


def test_a_token_that_cannot_delegate_does_not_use_the_credential_of_another_user(
    attacked: Authority,
) -> None:
    uuid = made(attacked, "admin")
    attacked.call_with_credential(MALLORY)
    with pytest.raises(Forbidden, match="Delegated tokens cannot manage trusts"):
        attacked.update("s", TRAP)
    with pytest.raises(Forbidden):
        attacked.patch("s", template={"heat_template_version": "2021-04-16", "resources": TRAP})
    with pytest.raises(Forbidden):
        attacked.roll_back("s", 1)
    attacked.deliver_all()
    assert (attacked.state(uuid), revisions(attacked)) == ("CREATE_COMPLETE", 1)
    assert attacked.shared_networks() == []


def test_a_token_with_fewer_roles_does_not_use_the_credential_of_its_own_user(attacked: Authority) -> None:
    made(attacked, "admin")
    attacked.call_with_credential("admin", "member")
    with pytest.raises(Forbidden, match="Delegated tokens cannot manage trusts"):
        attacked.update("s", TRAP)
    assert revisions(attacked) == 1
    attacked.call_with_credential("admin")
    attacked.update("s", {**HARMLESS, "b": HARMLESS["a"]})  # all roles of the credential
    attacked.deliver_all()
    assert revisions(attacked) == 2


def test_an_outage_of_keystone_opens_nothing(attacked: Authority) -> None:
    made(attacked, "admin")
    attacked.call_as(MALLORY)
    fault = {"service": "keystone", "method": "POST", "path": "/OS-TRUST/trusts", "status": 503}
    attacked.cloud.faults.set({"api": [fault]})
    with pytest.raises(Unavailable):
        attacked.update("s", TRAP)
    attacked.cloud.faults.set({})
    assert revisions(attacked) == 1


def test_a_rollback_to_own_content_does_not_run_with_the_credential_of_a_later_author(
    attacked: Authority,
) -> None:
    uuid = made(attacked, MALLORY)
    attacked.update("s", TRAP)
    attacked.deliver_all()
    assert attacked.state(uuid) == "UPDATE_FAILED"
    attacked.call_as("admin")
    attacked.update("s", HARMLESS)
    attacked.deliver_all()
    assert attacked.state(uuid) == "UPDATE_COMPLETE"
    attacked.call_as(MALLORY)
    attacked.roll_back("s", 2)
    attacked.deliver_all()
    assert (attacked.state(uuid), attacked.shared_networks()) == ("ROLLBACK_FAILED", [])


@pytest.mark.parametrize("request_", [{"timeout_mins": 30}, {"tags": "x"}, {"disable_rollback": True}, {}])
def test_an_administrator_who_changes_a_setting_does_not_run_the_content(
    attacked: Authority, request_: dict[str, Any]
) -> None:
    uuid = made(attacked, MALLORY, TRAP)
    attacked.call_as("admin")
    attacked.patch("s", **request_)
    attacked.deliver_all()
    assert (attacked.state(uuid), attacked.shared_networks()) == ("UPDATE_FAILED", [])


def test_a_signal_after_a_change_of_an_administrator_scales_with_the_rights_of_the_author(
    attacked: Authority,
) -> None:
    made(attacked, MALLORY, GROUP)
    attacked.call_as("admin")
    attacked.patch("s", tags="x")
    attacked.deliver_all()
    attacked.act("s", "check")
    attacked.deliver_all()
    attacked.call_as(MALLORY)
    attacked.signal("s", "policy")
    attacked.deliver_all()
    assert attacked.shared_networks() == []
    assert any("disallowed" in reason or "403" in reason for _, reason in attacked.causes()), (
        attacked.causes()
    )


def test_nobody_becomes_an_administrator_by_a_rollback(attacked: Authority) -> None:
    """The type is known only while the stack is made; Keystone refuses it to its author."""
    uuid = made(attacked, MALLORY)
    grant = {"user": MALLORY, "roles": [{"role": "admin", "project": "demo"}]}
    kind = {"type": "OS::Heat::Value", "properties": {"value": "OS::Keystone::UserRoleAssignment"}}
    group = {
        "type": "OS::Heat::ResourceGroup",
        "properties": {
            "count": 1,
            "resource_def": {"type": {"get_attr": ["kind", "value"]}, "properties": grant},
        },
    }
    try:
        attacked.update("s", {"kind": kind, "grant": group})
    except Forbidden:
        return  # refused at once
    attacked.deliver_all()
    assert attacked.state(uuid) == "UPDATE_FAILED"
    attacked.call_as("admin")
    attacked.update("s", HARMLESS)
    attacked.deliver_all()
    attacked.call_as(MALLORY)
    with contextlib.suppress(Forbidden):  # refused at once, or by Keystone
        attacked.roll_back("s", 2)
    attacked.deliver_all()
    assert attacked.roles_of(MALLORY) == {"member", "reader"}


def test_a_reader_gets_no_address_of_a_console(attacked: Authority) -> None:
    networks = [{"network": "private"}]
    properties = {"image": "cirros", "flavor": "m1.tiny", "networks": networks}
    uuid = made(attacked, MALLORY, {"vm": {"type": "OS::Nova::Server", "properties": properties}})
    assert attacked.state(uuid) == "CREATE_COMPLETE", attacked.causes()
    stack = attacked.stack_row("s")
    row = get_resource(attacked.database, stack, "vm")
    assert row is not None
    shown = read_for_resource(attacked.context, stack, row, ["console_urls"])
    assert shown.values["console_urls"]
    attacked.call_as(READER)
    refused = read_for_resource(attacked.context, stack, row, ["console_urls"])
    assert refused.values["console_urls"] is None
    assert "needs the permission stacks:update" in refused.error
    attacked.call_as(MALLORY)
    attacked.delete("s")
    attacked.deliver_all()
