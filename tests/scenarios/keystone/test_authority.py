"""The credential of content, beyond the table: reuse, nested stacks, updates in progress, roles, upgrades."""

# ruff: noqa: F811 - fixtures are imported
from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from orchestrator.errors import Forbidden, OrchestratorError, Unavailable
from orchestrator.operations.stacks import update as updates
from tests.plugins.stand_in_keystone import StandIn, identity  # noqa: F401 - a fixture
from tests.scenarios.keystone.authority_world import ADA, BOB, ROOT, Acts, Stage, acts
from tests.scenarios.keystone.credential_world import keystone, later, tidy  # noqa: F401 - fixtures
from tests.scenarios.snapshots.snapshot_requests import restore, take
from tests.scenarios.world import World

CHILD: Final = {"type": "child.yaml", "properties": {}}
VALUE: Final[dict[str, Any]] = {"type": "OS::Heat::Value", "properties": {"value": 1}}
RESERVED: Final = "resource_types:Shelf::Acts: [admin]"  # of a policy


def child(**resources: Any) -> dict[str, str]:
    return {"child.yaml": json.dumps({"heat_template_version": "2021-04-16", "resources": resources})}


@pytest.fixture
def stages(postgres_url: str, keystone: StandIn) -> Iterator[Callable[..., Stage]]:
    made: list[Stage] = []

    def make(**settings: Any) -> Stage:
        made.append(Stage.make(postgres_url, keystone, **settings))
        made[-1].call_as("ada")
        return made[-1]

    yield make
    for stage in made:
        stage.world.close()


@pytest.fixture
def stage(stages: Callable[..., Stage]) -> Stage:
    return stages()


def trustors(stage: Stage) -> list[str]:
    return sorted(trust["trustor_user_id"] for trust in stage.keystone.trusts.values())


def nested_name(stage: Stage) -> str:
    [row] = stage.world.rows("SELECT name FROM stack WHERE owner_id IS NOT NULL")
    return str(row.name)


def test_a_revision_records_its_author(stage: Stage) -> None:
    stage.world.create("s", {"a": acts(), "c": CHILD}, files=child(b=acts()))
    stage.deliver()
    author = {"user": "ada", "user_id": ADA, "project_id": "p1", "roles": ["member", "reader"]}
    rows = stage.world.rows("SELECT author, credential_id FROM revision")
    assert [row.author for row in rows] == [author, author]
    [credential] = stage.world.rows("SELECT id, roles FROM credential")
    assert {row.credential_id for row in rows} == {credential.id}
    assert credential.roles == ["member", "reader"]


def test_authors_are_recorded_without_keystone(world_without_keystone: World) -> None:
    world_without_keystone.create("s", {"a": VALUE})
    [row] = world_without_keystone.rows("SELECT author, credential_id FROM revision")
    assert (row.author["user"], row.credential_id) == ("tester", None)


@pytest.fixture
def world_without_keystone(postgres_url: str) -> Iterator[World]:
    world = World(postgres_url)
    yield world
    world.close()


def test_a_user_who_delegated_before_may_submit_with_a_token_that_cannot(stage: Stage) -> None:
    stage.world.create("s", {"a": acts()})
    stage.deliver()
    stage.call_as("ada", application_credential={"id": "a"})
    stage.world.update("s", {"a": acts("red")})
    stage.deliver()
    assert stage.users_of("update red") == {ADA}
    assert len(stage.keystone.trusts) == 1


def test_but_not_with_fewer_roles_than_delegated(stage: Stage) -> None:
    stage.world.create("s", {"a": acts()})
    stage.deliver()
    stage.call_as("ada", roles=["reader"], application_credential={"id": "a"})
    with pytest.raises(Forbidden):
        stage.world.update("s", {"a": acts("red")})
    stage.call_as("ada", roles=["reader"])
    stage.world.update("s", {"a": acts("red")})
    stage.deliver()
    roles = sorted(trust["roles"] for trust in stage.keystone.trusts.values())
    assert roles == [["member", "reader"], ["reader"]]  # the former revision may return until the sweep
    tidy(stage.world)
    assert [trust["roles"] for trust in stage.keystone.trusts.values()] == [["reader"]]


def test_the_same_user_with_more_roles_delegates_them(stage: Stage) -> None:
    stage.call_as("ada", roles=["reader", "member"])
    stage.world.create("s", {"a": acts()})
    stage.deliver()
    stage.call_as("ada", roles=["reader", "member", "creator"])
    stage.world.update("s", {"a": acts("red")})
    assert ["creator", "member", "reader"] in [sorted(x["roles"]) for x in stage.keystone.trusts.values()]


def test_a_submission_while_keystone_is_away_is_refused_without_a_trace(stage: Stage) -> None:
    stage.world.create("s", {"a": acts()})
    stage.deliver()
    stage.call_as("bob")
    stage.keystone.away = True
    before = stage.world.rows("SELECT number, action FROM revision")
    with pytest.raises(Unavailable):
        stage.world.update("s", {"a": acts("red")})
    with pytest.raises(Unavailable):
        stage.roll_back(1)
    assert stage.world.rows("SELECT number, action FROM revision") == before
    stage.keystone.away = False
    stage.world.patch("s", tags="x")  # needs no delegation
    stage.call_as("ada")
    stage.keystone.away = True
    stage.world.update("s", {"a": acts("red")})  # nor does the author
    stage.keystone.away = False


def test_a_caller_without_a_token_does_not_run_content_of_a_stack_with_a_credential(stage: Stage) -> None:
    """Key pairs of this server have no token of Keystone."""
    stage.world.create("s", {"a": acts()})
    stage.deliver()
    caller = replace(stage.world.caller, user="key", user_id="", login=None)
    stage.world.context = replace(stage.world.context, caller=caller)
    with pytest.raises(Forbidden, match="a token of Keystone"):
        stage.world.update("s", {"a": acts("red")})
    stage.world.create("own", {"a": VALUE})
    stage.world.update("own", {"a": VALUE, "b": VALUE})
    stage.deliver()
    assert stage.author("own") == ""


def test_content_of_a_caller_without_a_credential_never_gets_one(stage: Stage) -> None:
    own = stage.world.context
    caller = replace(stage.world.caller, user="key", user_id="", login=None)
    stage.world.context = replace(own, caller=caller)
    stage.world.create("s", {"a": acts()})
    stage.deliver()
    assert stage.state() == "CREATE_FAILED"
    stage.call_as("bob")
    stage.world.update("s", {"b": VALUE})
    stage.deliver()
    stage.world.context = replace(own, caller=caller)
    with pytest.raises(Forbidden):
        stage.roll_back(1)
    assert Acts.called == []


@pytest.mark.parametrize(
    "request_", [{"template_url": "x"}, {"parameters": {"p": "2"}}, {"clear_parameters": ["p"]}]
)
def test_any_content_of_a_patch_makes_its_caller_the_author(
    stage: Stage, request_: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    parameters = {"p": {"type": "string", "default": "1"}}
    resources = {"a": {**acts(), "properties": {"label": {"get_param": "p"}}}}
    stage.world.create("s", resources, parameters=parameters)
    stage.deliver()
    stage.call_as("bob")
    template = json.dumps(
        {"heat_template_version": "2021-04-16", "resources": resources, "parameters": parameters}
    )
    monkeypatch.setattr(updates, "PausingFetcher", lambda _: lambda _: template)
    stage.world.patch("s", **request_)
    assert stage.author() == BOB


def test_empty_parts_of_a_patch_are_no_content(stage: Stage) -> None:
    stage.world.create("s", {"a": acts()})
    stage.deliver()
    stage.call_as("bob")
    stage.world.patch("s", files={}, environment={"parameters": {}}, parameters={}, tags="x")
    assert stage.author() == ADA
    assert trustors(stage) == [ADA]


def test_a_former_author_is_released_when_the_stack_cannot_return_to_their_content(stage: Stage) -> None:
    stage.world.create("s", {"a": acts()})
    stage.deliver()
    stage.call_as("bob")
    Acts.refused.add("bad")
    stage.world.update("s", {"b": acts("bad")})
    stage.deliver()
    tidy(stage.world)
    assert trustors(stage) == [BOB, ADA]  # the last good revision is ada's
    stage.world.update("s", {"a": acts("red")})
    stage.deliver()
    tidy(stage.world)
    assert trustors(stage) == [BOB]


def test_a_nested_stack_in_progress_keeps_the_former_credential_until_it_is_visited(stage: Stage) -> None:
    """The former author's content goes on while the update of another user begins."""
    files = child(one=acts("one"), two={**acts("two"), "depends_on": "one"})
    stage.world.create("s", {"c": CHILD}, files=files)
    for _ in range(40):  # until the first object of the nested stack exists
        if stage.users_of("create one"):
            break
        stage.world.deliver()
    assert stage.users_of("create one") == {ADA}
    assert not stage.users_of("create two")
    waiting, stage.world.messages = stage.world.messages, []
    stage.call_as("root")
    stage.world.update("s", {"c": CHILD, "d": acts("new")}, files=child(one=acts("other")))
    plan, stage.world.messages = stage.world.messages, waiting
    while stage.world.messages and not stage.users_of("create two"):
        stage.world.deliver()  # of the nested stack, before the update is planned
    assert stage.users_of("create two") == {ADA}
    stage.world.messages += plan
    stage.deliver()
    assert stage.state() == "UPDATE_COMPLETE"
    assert stage.users_of("create new") == {ROOT}
    assert stage.users_of("update other") == {ROOT}
    assert stage.users("delete") == {ROOT}


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("ends", ["fails", "is cancelled", "completes"])
def test_an_operation_of_former_content_is_not_repeated_with_the_rights_of_a_later_author(
    stage: Stage, ends: str, *, nested: bool
) -> None:
    Acts.lost.add("former")
    resources = {"c": CHILD} if nested else {"a": acts("former")}
    stage.world.create("s", resources, files=child(a=acts("former")))
    while not stage.users_of("create former"):
        stage.world.deliver()
    stage.call_as("root")
    Acts.refused.add("bad")
    label = "late" if ends == "completes" else "bad"
    late = {"x": acts(label), "a": {**acts("new"), "depends_on": "x"}}
    stage.world.update("s", {"c": CHILD} if nested else late, files=child(**late))
    if ends == "is cancelled":
        stage.world.act("s", "cancel_without_rollback")
    Acts.lost.clear()
    stage.deliver()
    assert stage.users_of("create former") == {ADA}
    assert stage.state() == ("UPDATE_COMPLETE" if ends == "completes" else "UPDATE_FAILED")


def test_an_unchanged_nested_stack_belongs_to_the_author_of_a_complete_update(
    stage: Stage,
) -> None:
    group = {
        "type": "OS::Heat::AutoScalingGroup",
        "properties": {"min_size": 1, "max_size": 3, "resource": acts("member")},
    }
    policy = {
        "type": "OS::Heat::ScalingPolicy",
        "properties": {
            "adjustment_type": "change_in_capacity",
            "auto_scaling_group_id": {"get_resource": "g"},
            "scaling_adjustment": 1,
        },
    }
    stage.world.create("s", {"g": group, "p": policy})
    stage.deliver()
    stage.call_as("bob")
    stage.world.update("s", {"g": group, "p": policy, "b": VALUE})
    stage.deliver()
    tidy(stage.world)
    assert trustors(stage) == [BOB]
    stage.lose(ADA)
    Acts.clear()
    stage.world.signal("s", "p")
    stage.deliver()
    assert stage.users("create") == {BOB}


def test_only_the_author_submits_content_to_a_nested_stack(stage: Stage) -> None:
    stage.world.create("s", {"c": CHILD}, files=child(b=acts()))
    stage.deliver()
    name = nested_name(stage)
    stage.call_as("bob")
    with pytest.raises(Forbidden, match="Update the outermost stack"):
        stage.world.update(name, {"b": acts("red")})
    with pytest.raises(Forbidden):
        stage.roll_back(1, name)
    stage.world.patch(name, tags="x")
    stage.deliver()
    assert stage.author(name) == ADA
    stage.call_as("ada")
    stage.world.update(name, {"b": acts("red")})
    stage.deliver()
    assert stage.users_of("update red") == {ADA}
    assert stage.author(name) == ADA


def test_a_former_author_does_not_bring_content_back_into_a_nested_stack(stage: Stage) -> None:
    stage.world.create("s", {"c": CHILD}, files=child(b=acts()))
    stage.deliver()
    stage.call_as("root")
    stage.world.update("s", {"c": CHILD}, files=child(b=acts("red")))
    stage.deliver()
    name = nested_name(stage)
    for user in ("ada", "bob"):
        stage.call_as(user)
        with pytest.raises(Forbidden):
            stage.roll_back(1, name)
    stage.call_as("root")
    stage.world.update("s", {"c": CHILD}, files=child(b=acts("green")))
    stage.world.deliver(4)
    stage.call_as("ada")
    if stage.world.stack_row(name).in_progress:
        with pytest.raises(Forbidden):
            stage.world.act(name, "cancel_update")


def test_the_credential_of_a_check_runs_no_signal(stage: Stage) -> None:
    stage.world.create("s", {"a": acts()})
    stage.deliver()
    stage.lose()
    stage.call_as("root")
    stage.world.act("s", "check")
    stage.deliver()
    assert stage.users("observe") >= {ROOT}
    Acts.clear()
    stage.world.signal("s", "a")
    stage.world.patch("s", tags="x", converge=True)
    stage.deliver()
    assert Acts.called == []
    assert stage.author() == ADA


def test_a_delete_with_the_rights_of_a_colleague_deletes_nested_stacks_and_snapshots(stage: Stage) -> None:
    stage.world.create("s", {"a": acts(), "c": CHILD}, files=child(b=acts()))
    stage.deliver()
    stage.lose()
    stage.call_as("bob")
    stage.world.delete("s")
    stage.deliver()
    assert stage.users("delete") == {BOB}
    assert stage.shelf.objects == {}
    later(stage.world)
    tidy(stage.world)
    assert trustors(stage) in ([], [ADA])  # Keystone removes the trust of a disabled user


def test_roles_of_administrators_are_not_delegated_by_default(stages: Callable[..., Stage]) -> None:
    stage = stages()
    stage.call_as("root", roles=["admin", "manager", "member", "reader", "creator"])
    stage.world.create("s", {"a": acts()})
    [trust] = stage.keystone.trusts.values()
    assert trust["roles"] == ["member", "reader", "creator"]


@pytest.mark.parametrize("roles", [["admin"], ["admin", "reader"]])
def test_all_roles_are_delegated_in_a_cloud_without_members(stage: Stage, roles: list[str]) -> None:
    stage.call_as("root", roles=roles)
    stage.world.create("s", {"a": acts()})
    [trust] = stage.keystone.trusts.values()
    assert trust["roles"] == roles


def test_content_with_a_type_of_administrators_has_their_roles(
    stages: Callable[..., Stage], tmp_path: Path
) -> None:
    (tmp_path / "policy.yaml").write_text(RESERVED)
    stage = stages(policy_file=tmp_path / "policy.yaml")
    stage.call_as("root")
    stage.world.create("s", {"a": VALUE})
    stage.deliver()
    stage.world.update("s", {"a": VALUE, "c": CHILD}, files=child(b=acts()))
    stage.deliver()
    assert [sorted(role["name"] for role in token["roles"]) for token in Acts.tokens[:1]] == [
        ["admin", "member", "reader"]
    ]
    stage.world.update("s", {"a": VALUE})
    stage.deliver()
    tidy(stage.world)
    [trust] = stage.keystone.trusts.values()
    assert trust["roles"] == ["member", "reader"]


def test_an_operator_may_delegate_all_roles(stages: Callable[..., Stage]) -> None:
    stage = stages(trusts_delegated_roles="*")
    stage.call_as("root")
    stage.world.create("s", {"a": acts()})
    [trust] = stage.keystone.trusts.values()
    assert trust["roles"] == ["admin", "member", "reader"]


@pytest.mark.parametrize("nested", [False, True])
def test_a_rollback_and_a_restore_need_the_permission_for_all_types(
    stages: Callable[..., Stage], tmp_path: Path, *, nested: bool
) -> None:
    (tmp_path / "policy.yaml").write_text(RESERVED)
    stage = stages(policy_file=tmp_path / "policy.yaml")
    stage.call_as("root")
    group = {"type": "OS::Heat::ResourceGroup", "properties": {"count": 1, "resource_def": acts()}}
    resources, files = ({"c": CHILD}, child(b=group)) if nested else ({"a": acts()}, {})
    stage.world.create("s", resources, files=files)
    stage.deliver()
    copy = take(stage.world)
    stage.deliver()
    stage.world.update("s", {"a": VALUE})
    stage.deliver()
    stage.call_as("bob")
    with pytest.raises(Forbidden, match=r"resource_types:Shelf::Acts"):
        stage.roll_back(1)
    with pytest.raises(Forbidden, match=r"resource_types:Shelf::Acts"):
        restore(stage.world, copy)
    assert len(stage.world.rows("SELECT 1 FROM revision WHERE action <> 'CREATE'")) == 1
    stage.call_as("root")
    stage.roll_back(1)
    stage.deliver()
    assert stage.state() == "ROLLBACK_COMPLETE"


def make_old(stage: Stage) -> None:
    """Let all rows come from the version before authors were recorded."""
    with stage.world.database.borrow() as db:
        db.execute("UPDATE revision SET author = NULL, credential_id = NULL")
        db.execute("UPDATE stack SET credential_id = NULL")
        db.execute("UPDATE credential SET roles = NULL")
    stage.forget_sessions()


def test_content_of_an_older_version_runs_with_the_credential_of_its_stack(stage: Stage) -> None:
    stage.world.create("s", {"a": acts(), "c": CHILD}, files=child(b=acts()))
    stage.deliver()
    make_old(stage)
    Acts.clear()
    stage.call_as("bob")
    stage.world.patch("s", tags="x", converge=True)
    stage.world.signal("s", "a")
    stage.deliver()
    assert len(Acts.called) >= 3
    assert {user for _, user in Acts.called} == {ADA}


def test_after_an_upgrade_a_failed_update_returns_to_the_content_with_its_credential(stage: Stage) -> None:
    stage.world.create("s", {"a": acts(), "c": CHILD}, files=child(b=acts()))
    stage.deliver()
    make_old(stage)
    Acts.clear()
    Acts.refused.add("bad")
    stage.call_as("root")
    resources = {"a": acts("red"), "c": CHILD, "x": acts("bad")}
    stage.world.update("s", resources, files=child(b=acts("red")), disable_rollback=False)
    stage.deliver()
    assert stage.state() == "ROLLBACK_COMPLETE"
    assert stage.users_of("create bad") == {ROOT}
    assert stage.users_of("update blue") <= {ADA}


def test_after_an_upgrade_a_token_that_cannot_delegate_waits_for_one_that_can(stage: Stage) -> None:
    stage.world.create("s", {"a": acts()})
    stage.deliver()
    make_old(stage)
    stage.call_as("ada", application_credential={"id": "a"})
    with pytest.raises(OrchestratorError):
        stage.world.update("s", {"a": acts("red")})
    stage.call_as("ada")
    stage.world.update("s", {"a": acts("red")})
    stage.deliver()
    stage.call_as("ada", application_credential={"id": "a"})
    stage.world.update("s", {"a": acts("green")})
    stage.deliver()
    assert stage.users_of("update green") == {ADA}
