"""Permissions: the built-in table, and the operator's overrides."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.config import Settings
from orchestrator.errors import Forbidden, Misconfigured
from orchestrator.security.caller import Caller, for_project
from orchestrator.security.policy import CHANGES, IS_ADMIN, TABLE, allowed, policy_of, require, type_policy

READER, MEMBER, ADMIN = (Caller("p", roles=(role,)) for role in ("reader", "member", "admin"))
STACK_USER = Caller("p", roles=("heat_stack_user",))
NOBODY = Caller("p")


def may(caller: Caller) -> set[str]:
    return {name for name in TABLE if allowed(TABLE, name, caller)}


def test_a_role_includes_the_permissions_of_lesser_roles() -> None:
    assert set() == may(NOBODY) < may(READER) < may(MEMBER) < may(ADMIN) < set(TABLE)
    assert may(STACK_USER) < may(MEMBER)


def test_readers_change_nothing() -> None:
    changing = [
        "create",
        "update",
        "delete",
        "abandon",
        "snapshot",
        "restore",
        "rollback",
        "suspend",
        "resume",
        "cancel",
        "mark",
        "signal",
        "unset",
    ]
    assert not [name for name in may(READER) if any(f":{keyword}" in name for keyword in changing)]
    assert {"stacks:show", "events:index", "actions:check"} <= may(READER)
    assert may(READER) & CHANGES == {"actions:check"}


def test_a_stacks_user_may_look_up_read_metadata_and_signal() -> None:
    assert may(STACK_USER) == {
        "stacks:lookup",
        "resource:metadata",
        "resource:signal",
        "resource:unset_hook",
        "software_deployments:metadata",
        "cloudformation:DescribeStackResource",
    }


def test_admins_may_do_everything_that_is_not_forbidden_to_all() -> None:
    assert set(TABLE) - may(ADMIN) == {"stacks:global_index", "software_configs:global_index"}
    assert may(ADMIN) - may(MEMBER) >= {IS_ADMIN, "service:index", "resource_types:OS::Nova::Flavor"}


def test_types_are_refused_by_their_own_rule_and_by_their_namespaces() -> None:
    assert len([name for name in TABLE if name.startswith("resource_types:")]) == 24
    enter = type_policy(TABLE, MEMBER)
    with pytest.raises(Forbidden, match=r"^You are not authorized to use resource_types:OS::Nova::Flavor\.$"):
        enter("OS::Nova::Flavor")
    with pytest.raises(Forbidden, match=r"^You are not authorized to use OS::Keystone::User\.$"):
        enter("OS::Keystone::User")
    for name in ("OS::Nova::Server", "OS::Keystone", "Own", ""):
        enter(name)
    for name in ("OS::Nova::Flavor", "OS::Keystone::User"):
        type_policy(TABLE, ADMIN)(name)


def test_an_operators_file_overrides_the_rules_that_it_names(tmp_path: Path) -> None:
    policy = read(
        tmp_path,
        "stacks:delete: [admin]\nstacks:global_index: [auditor]\n"
        "resource_types:OS::Nova::Server: [builder]\n",
    )
    assert not allowed(policy, "stacks:delete", MEMBER)
    assert allowed(policy, "stacks:delete", ADMIN)
    assert allowed(policy, "stacks:global_index", Caller("p", roles=("auditor",)))
    assert allowed(policy, "stacks:create", MEMBER)
    type_policy(policy, Caller("p", roles=("builder",)))("OS::Nova::Server")
    with pytest.raises(Forbidden):
        type_policy(policy, ADMIN)("OS::Nova::Server")


def test_a_wrong_file_is_refused_with_every_fault(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured) as refused:
        read(tmp_path, "stacks:delte: [admin]\nstacks:create: admin\nstacks:show: [1]\n")
    assert str(refused.value).splitlines()[1:] == [
        '  stacks:delte: unknown policy. did you mean "stacks:delete"?',
        "  stacks:create: must be a list of roles; [] allows no caller",
        "  stacks:show: must be a list of roles; [] allows no caller",
    ]
    for text in ("- a\n", "{", "\x00"):
        with pytest.raises(Misconfigured, match="is wrong"):
            read(tmp_path, text)
    with pytest.raises(Misconfigured, match="cannot be read"):
        policy_of(Settings(policy_file=tmp_path / "none.yaml"))


def test_refusals_name_the_requested_object() -> None:
    with pytest.raises(Forbidden, match=r"^You are not authorized to use stacks:create\.$"):
        require(TABLE, "stacks:create", READER)


def test_only_admins_of_a_project_may_name_another_in_the_path() -> None:
    admin = Caller("own", roles=("admin",), is_admin=True)
    assert for_project(admin, "other") is admin
    for caller in (Caller("own"), Caller("", is_admin=True)):
        with pytest.raises(Forbidden):
            for_project(caller, "other")
    assert for_project(None, "any").is_admin is False
    assert for_project(None, "any", admin=True).is_admin is True


def read(folder: Path, text: str) -> dict[str, frozenset[str]]:
    path = folder / f"{abs(hash(text))}.yaml"
    path.write_text(text)
    return dict(policy_of(Settings(policy_file=path)))
