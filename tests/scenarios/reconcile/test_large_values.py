"""The large values of resources have a maximum sum per stack and per project (operations/adr/0012)."""

from __future__ import annotations

import pytest

from orchestrator.store.access import quotas
from orchestrator.store.nodes import large_values
from tests import constants
from tests.scenarios.world import World

KB = 1024


def value(kilobytes: int) -> dict:
    return {"type": "OS::Heat::Value", "properties": {"value": "x" * (kilobytes * KB)}}


def chain(*kilobytes: int) -> dict:
    """Resources that are created one after the other."""
    names = [f"r{number}" for number in range(len(kilobytes))]
    after = [{}, *({"depends_on": name} for name in names[:-1])]
    return {name: value(size) | order for name, size, order in zip(names, kilobytes, after, strict=True)}


def sizes(world) -> list[int]:
    """The counted kilobytes: two rows for each large value, of properties and attributes."""
    return [row[0] // KB for row in world.rows("SELECT bytes FROM large_value ORDER BY resource_id, part")]


@pytest.fixture
def limited(postgres_url):
    world = World(postgres_url, max_large_value_bytes=450 * KB)
    yield world
    world.close()


def test_small_values_are_not_counted(limited):
    limited.create("s", chain(60, 60, 60, 60, 60, 60, 60, 60))
    limited.deliver_all()
    assert sizes(limited) == []


def test_a_resource_fails_when_the_large_values_of_its_stack_exceed_the_limit(limited):
    uuid = limited.create("s", chain(100, 100, 100))
    limited.deliver_all()
    assert limited.state(uuid) == "CREATE_FAILED"
    [reason] = limited.rows("SELECT status_reason FROM resource WHERE name = 'r2'")
    assert reason[0] == (
        "RequestLimitExceeded: resources.r2: Request limit exceeded: the large values of the stack have "
        "more than 460800 bytes."
    )
    assert sizes(limited) == [100] * 4
    assert limited.rows("SELECT 1 FROM resource WHERE length(properties::text) > 70000 AND name = 'r2'") == []


def test_unchanged_and_smaller_values_are_accepted_and_release_space(limited):
    uuid = limited.create("s", chain(100, 100))
    limited.deliver_all()
    constants.replace_for_test({"max_large_value_bytes": 1})
    limited.update("s", chain(100, 90))
    limited.deliver_all()
    assert limited.state(uuid) == "UPDATE_COMPLETE"
    assert sizes(limited) == [100, 100, 90, 90]
    limited.update("s", chain(100, 1))
    limited.deliver_all()
    assert limited.state(uuid) == "UPDATE_COMPLETE"
    assert sizes(limited) == [100, 100]
    limited.update("s", chain(101, 1))
    limited.deliver_all()
    assert limited.state(uuid) == "UPDATE_FAILED"
    assert sizes(limited) == [100, 100]


def test_deleted_resources_release_their_space(limited):
    uuid = limited.create("s", chain(100, 100))
    limited.deliver_all()
    limited.update("s", chain(100))
    limited.deliver_all()
    limited.update("s", chain(100, 100))
    limited.deliver_all()
    assert limited.state(uuid) == "UPDATE_COMPLETE"
    assert sizes(limited) == [100] * 4


def test_the_stacks_of_a_project_have_a_limit_together_which_an_operator_can_change(limited):
    limited.settings.quotas["large_value_bytes"] = 250 * KB
    first, second = (limited.create(name, chain(100)) for name in ("first", "second"))
    limited.deliver_all()
    assert sorted(map(limited.state, (first, second))) == ["CREATE_COMPLETE", "CREATE_FAILED"]
    with limited.database.connect() as db:
        quotas.set_maximum(db, "p1", "large_value_bytes", 900_000)
    third = limited.create("third", chain(100))
    limited.deliver_all()
    assert limited.state(third) == "CREATE_COMPLETE"


def test_a_replacement_with_a_large_value_is_counted_as_itself(limited):
    limited.create("s", {"r0": {"type": "OS::Heat::RandomString"}})
    limited.deliver_all()
    limited.update("s", chain(100))
    limited.deliver_all()
    counted = limited.rows("SELECT count(*) FROM large_value l JOIN resource r ON r.id = l.resource_id")
    assert counted == [(2,)]


def test_events_contain_no_large_properties(limited):
    limited.create("s", {"large": value(100), "small": value(1)})
    limited.deliver_all()
    with_properties = limited.rows("SELECT DISTINCT resource_name FROM event WHERE properties IS NOT NULL")
    assert [row[0] for row in with_properties] == ["small"]


def test_the_sizes_of_concurrent_checks_are_seen_by_each_other(limited):
    with limited.database.connect(hot=True) as one, limited.database.connect(hot=True) as two:
        for number, db in enumerate((one, two)):
            assert large_values.put(db, number, "attributes", root_id=7, project_id="p", size=5) == 0
        assert large_values.sums(one, 7, "p") == large_values.sums(two, 7, "p") == (10, 10)
        assert large_values.put(two, 1, "attributes", root_id=7, project_id="p", size=4) == 5
