"""OS::Heat::Stack: a stack in another region, which is a second installation of ours on loopback."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import text

from orchestrator.clients.remote_stacks import RemoteStacks
from orchestrator.errors import InvalidTemplate, ProviderSilent
from orchestrator.operations.context import Body
from orchestrator.operations.snapshots import snapshots
from orchestrator.security.caller import Caller
from tests.e2e.running import eventually
from tests.plugins.region_fixture import Region, region  # noqa: F401 - a fixture
from tests.scenarios.world import World

TEMPLATE = """
heat_template_version: 2021-04-16
parameters:
  word: {type: string, default: w}
resources:
  inner:
    type: My::Own
    properties: {value: {get_param: word}}
  file:
    type: OS::Heat::Value
    properties: {value: {get_file: motd}}
outputs:
  word: {value: {get_attr: [inner, output]}}
  file: {value: {get_attr: [file, value]}}
"""
BROKEN = "heat_template_version: 2021-04-16\nresources: {a: {type: No::Such}}\n"
FAILING = (
    "heat_template_version: 2021-04-16\n"
    "resources: {a: {type: OS::Heat::TestResource, properties: {fail: true}}}\n"
)
AROUND: dict[str, Any] = {
    "files": {"motd": "hello"},
    "environment": {"resource_registry": {"My::Own": "OS::Heat::TestResource"}},
    "outputs": {
        "name": {"value": {"get_attr": ["far", "stack_name"]}},
        "outputs": {"value": {"get_attr": ["far", "outputs"]}},
        "word": {"value": {"get_attr": ["far", "outputs", "word"]}},
        "id": {"value": {"get_resource": "far"}},
    },
}


@pytest.fixture
def here(postgres_url: str, region: Region) -> Iterator[World]:  # noqa: F811
    """An installation that knows the other region."""
    made = World(postgres_url, action_retry_limit=0, **region.settings())
    yield made
    made.close()
    region.seen.clear()


def far(template: str = TEMPLATE, **properties: Any) -> dict[str, Any]:
    return {"far": {"type": "OS::Heat::Stack", "properties": {"template": template, **properties}}}


def made(world: World, name: str, resources: dict[str, Any] | None = None) -> str:
    uuid = world.create(name, resources or far(), **AROUND)
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    return uuid


def updated(world: World, name: str, resources: dict[str, Any]) -> None:
    world.update(name, resources, **AROUND)
    world.deliver_all()


def remote_stack(region: Region, name: str, place: str = "north") -> dict[str, str]:  # noqa: F811
    """Return the stacks of a region that a stack here made."""
    return {item: state for item, state in region.stacks(place).items() if item.startswith(f"{name}-far-")}


def id_of(world: World) -> str:
    (row,) = world.rows("SELECT physical_id FROM resource WHERE name = 'far' AND NOT deposed")
    return str(row.physical_id)


def test_it_is_made_with_all_that_its_template_needs_and_deleted(here, region):  # noqa: F811
    uuid = made(here, "whole", far(parameters={"word": "v"}, timeout=7))
    ((name, state),) = remote_stack(region, "whole").items()
    assert state == "CREATE_COMPLETE"
    assert here.outputs("whole") == {
        "name": name,
        "outputs": {"word": "v", "file": "hello"},
        "word": "v",
        "id": id_of(here),
    }
    (row,) = region.world.rows("SELECT tags, timeout_mins FROM stack WHERE name = :n", n=name)
    assert (len(row.tags), row.timeout_mins) == (1, 7)
    here.delete("whole")
    here.deliver_all()
    assert here.state(uuid) == "DELETE_COMPLETE"
    assert remote_stack(region, "whole") == {}


def test_another_template_or_parameter_is_brought_to_the_same_stack(here, region):  # noqa: F811
    uuid = made(here, "same")
    before = id_of(here)
    updated(here, "same", far(parameters={"word": "again"}))
    assert here.outputs("same")["word"] == "again"
    updated(here, "same", far(TEMPLATE.replace("[inner, output]", "[file, value]")))
    assert (here.state(uuid), here.outputs("same")["word"]) == ("UPDATE_COMPLETE", "hello")
    assert id_of(here) == before
    assert list(remote_stack(region, "same").values()) == ["UPDATE_COMPLETE"]


def test_metadata_alone_asks_nothing_of_it(here, region):  # noqa: F811
    uuid = made(here, "meta")
    resources = far()
    resources["far"]["metadata"] = {"a": 1}
    updated(here, "meta", resources)
    assert here.state(uuid) == "UPDATE_COMPLETE"
    assert list(remote_stack(region, "meta").values()) == ["CREATE_COMPLETE"]


def test_another_region_takes_another_stack(here, region):  # noqa: F811
    uuid = made(here, "moved")
    before = id_of(here)
    updated(here, "moved", far(context={"region_name": "south"}))
    assert here.state(uuid) == "UPDATE_COMPLETE"
    assert id_of(here) != before
    assert (len(remote_stack(region, "moved")), len(remote_stack(region, "moved", "south"))) == (0, 1)


def test_it_is_suspended_resumed_and_checked_with_the_stack_around_it(here, region):  # noqa: F811
    uuid = made(here, "acts")
    for action in ("suspend", "resume", "check", "check"):
        here.act("acts", action)
        here.deliver_all()
        assert here.state(uuid) == f"{action.upper()}_COMPLETE"
        assert list(remote_stack(region, "acts").values()) == [f"{action.upper()}_COMPLETE"]
    requests = [path for method, path in region.seen if method == "POST" and path.endswith("/actions")]
    assert len(requests) == 4


def test_a_check_that_fails_there_fails_here_and_the_next_update_makes_another(here, region):  # noqa: F811
    uuid = made(here, "sick")
    ((name, _),) = remote_stack(region, "sick").items()
    lose = """UPDATE resource SET physical_id = NULL
        WHERE name = 'inner' AND stack_id = (SELECT id FROM stack WHERE name = :n)"""
    with region.world.database.engine.begin() as connection:
        connection.execute(text(lose), {"n": name})
    here.act("sick", "check")
    here.deliver_all()
    assert here.state(uuid) == "CHECK_FAILED"
    assert here.rows("SELECT op FROM resource WHERE name = 'far'")[0].op is None
    before = id_of(here)
    updated(here, "sick", far())
    assert here.state(uuid) == "UPDATE_COMPLETE"
    assert id_of(here) != before


def test_a_check_fails_while_the_remote_stack_has_failed(here, region):  # noqa: F811
    uuid = made(here, "broken")
    ((name, _),) = remote_stack(region, "broken").items()
    with region.world.database.engine.begin() as connection:
        statement = (
            "UPDATE stack SET action = 'UPDATE', status = 'FAILED', good_revision_id = NULL WHERE name = :n"
        )
        connection.execute(text(statement), {"n": name})
    here.act("broken", "check")
    here.deliver_all()
    assert here.state(uuid) == "CHECK_FAILED"
    assert "Went to status UPDATE_FAILED" in here.stack_row("broken").status_reason


def test_a_remote_snapshot_is_taken_restored_and_deleted_with_ours(here, region):  # noqa: F811
    uuid = made(here, "copied", far(parameters={"word": "first"}))
    taken = snapshots.take(here.context, here.stack_row("copied"), Body(b"{}"))
    here.messages += taken.messages
    here.deliver_all()
    assert here.state(uuid) == "SNAPSHOT_COMPLETE"
    count = "SELECT action, status FROM snapshot"
    assert [tuple(row) for row in region.world.rows(count)] == [("CREATE", "COMPLETE")]
    updated(here, "copied", far(parameters={"word": "second"}))
    assert here.outputs("copied")["word"] == "second"
    here.messages += snapshots.restore(here.context, here.stack_row("copied"), str(taken.snapshot.uuid))
    here.deliver_all()
    assert here.state(uuid) == "RESTORE_COMPLETE"
    assert here.outputs("copied")["word"] == "first"
    snapshots.remove(here.context, here.stack_row("copied"), str(taken.snapshot.uuid))
    here.deliver_all()
    eventually(lambda: not here.sweep_once() and not region.world.rows(count))


def test_a_remote_failure_is_reported_locally(here, region):  # noqa: F811
    uuid = here.create("fails", far(FAILING))
    here.deliver_all()
    assert here.state(uuid) == "CREATE_FAILED"
    (row,) = here.rows("SELECT status_reason FROM resource WHERE name = 'far'")
    assert row.status_reason == (
        'ResourceInError: resources.far: Went to status CREATE_FAILED due to "Resource CREATE failed: '
        'ValueError: resources.a: Test Resource failed a"'
    )


def test_a_lost_answer_creates_no_second_stack(postgres_url, region, monkeypatch):  # noqa: F811
    world = World(postgres_url, **region.settings())
    create: Callable[..., str] = RemoteStacks.create
    lost: list[str] = []

    def once(self: RemoteStacks, body: Any) -> str:
        made = create(self, body)
        if not lost:
            lost.append(made)
            raise ProviderSilent("nobody answered")
        return made

    monkeypatch.setattr(RemoteStacks, "create", once)
    uuid = world.create("lost", far(), **AROUND)
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert len(remote_stack(region, "lost")) == 1
    assert id_of(world) == lost[0]
    world.close()


def test_a_missing_remote_stack_is_absent_and_an_unreachable_stack_is_not(here, region, monkeypatch):  # noqa: F811
    uuid = made(here, "away")
    monkeypatch.setattr(RemoteStacks, "_answer", _unreachable)
    here.delete("away")
    for _ in range(4):
        here.sweep_once()
        here.deliver(10)
    assert here.state(uuid) == "DELETE_IN_PROGRESS"
    assert len(remote_stack(region, "away")) == 1
    here.elapse(2 * 3600, "action")
    here.sweep_once()
    here.deliver(10)
    assert here.state(uuid) == "DELETE_FAILED"
    monkeypatch.undo()
    here.delete("away")
    here.deliver_all()
    assert (here.state(uuid), remote_stack(region, "away")) == ("DELETE_COMPLETE", {})


def _unreachable(*_: Any) -> Any:
    raise ProviderSilent("region north did not answer")


# Before it is made.


def refusal(world: World, resources: dict[str, Any], **options: Any) -> InvalidTemplate:
    with pytest.raises(InvalidTemplate) as caught:
        world.create("refused", resources, **{**AROUND, **options})
    assert world.rows("SELECT 1 FROM stack") == []
    return caught.value


def test_a_template_that_is_wrong_there_is_refused_here(here, region):  # noqa: F811
    error = refusal(here, far(BROKEN))
    assert str(error) == (
        'Failed validating stack template using Heat endpoint at region "north" due to '
        '"ERROR: The Resource Type (No::Such) could not be found."'
    )
    assert error.diagnostics[0].path == "resources.far.properties.template"
    assert remote_stack(region, "refused") == {}


@pytest.mark.parametrize(
    ("context", "place", "why"),
    [
        (
            {"region_name": "west"},
            'region "west"',
            "publicURL endpoint for orchestration service in west region not found",
        ),
        ({"credential_secret_id": "x"}, "remote cloud", "key-manager endpoint is not in service catalog."),
    ],
)
def test_a_region_that_the_catalog_has_not_is_refused(here, context, place, why):
    error = refusal(here, far(context=context))
    assert str(error) == f'Cannot establish connection to Heat endpoint at {place} due to "{why}"'
    assert error.diagnostics[0].path == "resources.far.properties.context"


def test_another_project_may_not_call_it(here):
    here.context = replace(here.context, caller=Caller("p2", "stranger"))
    assert "in north region not found" in str(refusal(here, far()))


def test_without_a_catalog_there_is_no_other_region(world):
    assert "in west region not found" in str(refusal(world, far(context={"region_name": "west"})))


def test_the_token_is_written_nowhere(here, region):  # noqa: F811
    made(here, "told")
    tables = [
        row.tablename for row in here.rows("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    ]
    for table in tables:
        for row in here.rows(f"SELECT t::text AS line FROM {table} t"):
            assert region.tokens["north"] not in row.line, table
