"""The quota of resources of a project: all stacks together, nested stacks included."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import orjson
import pytest

from orchestrator.config import Settings
from orchestrator.errors import LimitExceeded
from orchestrator.operations.context import Body
from orchestrator.operations.preview.create import preview_create
from orchestrator.operations.preview.update import preview_update
from orchestrator.operations.quotas import counts
from orchestrator.operations.quotas.room import RESOURCES, counts_of, require_room
from orchestrator.security.caller import Caller
from orchestrator.store.access import resource_counts
from orchestrator.store.access.quotas import set_maximum
from tests.scenarios.children.test_nested_stacks import URL, child_text, nested
from tests.scenarios.world import World, test_resource

FULL = "You have reached the maximum resources per tenant, {}. Please delete some resources."


@pytest.fixture
def small(postgres_url: str) -> Iterator[World]:
    """A world whose projects may have four resources."""
    world = World(postgres_url, quotas={"resources": 4})
    counts_of.cache_clear()
    yield world
    world.close()


def some(count: int) -> dict[str, object]:
    return {f"r{number}": test_resource() for number in range(count)}


def allow(world: World, maximum: int) -> None:
    with world.database.connect() as db:
        set_maximum(db, world.caller.project_id, "resources", maximum)


def body(count: int) -> Body:
    template = {"heat_template_version": "2021-04-16", "resources": some(count)}
    return Body(orjson.dumps({"stack_name": "new", "template": template}))


def test_the_default_has_room_for_several_stacks_of_a_million() -> None:
    assert Settings().quotas["resources"] >= 2 * Settings().max_resources_per_stack


def test_a_project_has_a_maximum_of_resources_in_all_stacks(small: World) -> None:
    small.create("a", some(3))
    with pytest.raises(LimitExceeded, match=FULL.format(4)):
        small.create("b", some(2))
    small.create("b", some(1))
    assert small.rows("SELECT name FROM stack ORDER BY name") == [("a",), ("b",)]
    allow(small, 5)
    small.create("c", some(1))
    small.deliver_all()
    small.delete("a")
    small.deliver_all()
    counts_of.cache_clear()  # a count is used again for a time proportional to its duration
    small.create("d", some(3))
    with pytest.raises(LimitExceeded):
        small.create("e", some(1))


def test_only_updates_that_add_resources_are_refused(small: World) -> None:
    small.create("a", some(4))
    small.deliver_all()
    with pytest.raises(LimitExceeded, match=FULL.format(4)):
        small.update("a", some(5))
    small.update("a", some(4))
    small.deliver_all()
    allow(small, 1)
    small.update("a", some(3))
    small.deliver_all()
    assert small.stack_row("a").state == "UPDATE_COMPLETE"
    allow(small, -1)
    small.update("a", some(20))


def test_previews_are_refused_as_well(small: World) -> None:
    small.create("a", some(4))
    small.deliver_all()
    with pytest.raises(LimitExceeded, match=FULL.format(4)):
        preview_create(small.context, body(1))
    with pytest.raises(LimitExceeded, match=FULL.format(4)):
        preview_update(small.context, small.stack_row("a"), body(5))
    assert preview_update(small.context, small.stack_row("a"), body(4))


def test_other_projects_and_admins_are_not_limited(small: World) -> None:
    small.create("a", some(4))
    small.context = replace(small.context, caller=Caller("p2", roles=("member",)))
    small.create("a", some(4))
    small.context = replace(small.context, caller=Caller("p1", roles=("admin",), is_admin=True))
    small.create("b", some(4))


def test_nested_stacks_count(small: World) -> None:
    uuid = small.create("s", {"child": nested()}, files={URL: child_text()})
    small.deliver_all()
    assert small.state(uuid) == "CREATE_COMPLETE"
    counts = [row[0] for row in small.rows("SELECT resource_count FROM revision ORDER BY id")]
    counts_of.cache_clear()
    with pytest.raises(LimitExceeded):
        small.create("t", some(5 - sum(counts)))
    allow(small, sum(counts) + 1)
    uuid = small.create("u", {"child": nested()}, files={URL: child_text()})
    small.deliver_all()
    assert small.state(uuid) == "CREATE_FAILED"
    assert f"resources.child: Request limit exceeded: {FULL.format(sum(counts) + 1)}" in (
        small.stack_row("u").status_reason
    )


def test_a_rollback_keeps_the_number_of_its_revision(small: World) -> None:
    small.create("a", some(3))
    small.deliver_all()
    small.update("a", {**some(1), "broken": test_resource(fail=True)}, disable_rollback=False)
    small.deliver_all()
    assert small.stack_row("a").state == "ROLLBACK_COMPLETE"
    with small.database.borrow() as db:
        assert resource_counts.of_project(db, "p1") == 3


def test_an_expensive_count_is_repeated_seldom(small: World, monkeypatch: pytest.MonkeyPatch) -> None:
    now, reads = [1_000.0], []

    def count(_database: object, project: str) -> int:
        reads.append(project)
        now[0] += 0.5
        return 1_000_000

    quota = replace(RESOURCES, used=count)
    monkeypatch.setattr(counts, "time", type("Clock", (), {"monotonic": lambda: now[0]}))
    for _ in range(100):
        require_room(small.database, quota, "p1", 5_000_000, 10)
        now[0] += 0.05
    assert len(reads) == 1
    with pytest.raises(LimitExceeded):  # the accepted resources are known without another count
        require_room(small.database, quota, "p1", 1_001_000, 1, reserve=False)
    now[0] += 10
    require_room(small.database, quota, "p1", 1_001_000, 1, reserve=False)
    assert len(reads) == 2


def test_counts_of_a_bounded_number_of_projects_are_kept(
    small: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counts, "MAX_COUNTED", 3)
    for number in range(5):
        require_room(small.database, RESOURCES, str(number), 1, 1, reserve=False)
    assert len(counts_of(small.database, RESOURCES)._counts) == 3
