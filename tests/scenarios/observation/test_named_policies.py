"""Policies with a name, to which environments refer (operations/adr/0018)."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import orjson
import psycopg
import pytest

from orchestrator.errors import InvalidTemplate
from orchestrator.operations.context import Body
from orchestrator.operations.observation import rules
from orchestrator.operations.observation.healing import repair_due_faults
from tests.scenarios.observation.shelf import Shelf
from tests.scenarios.observation.test_repairs import BOX, Healer
from tests.scenarios.world import World

GOLD: dict[str, Any] = {"observation_policy": "gold"}


@pytest.fixture
def healer(postgres_url: str) -> Iterator[Healer]:
    shelf = Shelf()
    world = World(postgres_url, types=shelf.types(), observation_interval_seconds=30)
    yield Healer(world, shelf)
    world.close()


def named(healer: Healer, mode: str = "heal", **options: Any) -> str:
    body = {"kind": "policy", "mode": mode, "name": "gold", **options}
    return str(rules.create(healer.world.context, Body(orjson.dumps(body)))["id"])


def mode(healer: Healer, resource: str | None = None) -> Any:
    return rules.effective(healer.world.context, "s", resource)["mode"]


def test_the_policy_of_an_environment_applies_to_its_stack_and_the_stacks_below(healer: Healer):
    named(healer)
    group = {"type": "OS::Heat::ResourceGroup", "properties": {"count": 1, "resource_def": BOX}}
    healer.world.create("s", {"a": BOX, "g": group}, environment=GOLD)
    healer.world.create("other", {"a": BOX})
    healer.deliver()
    assert [mode(healer), mode(healer, "a"), mode(healer, "g.0")] == ["heal"] * 3
    assert rules.effective(healer.world.context, "other", "a")["mode"] == "report"
    healer.discover()
    healer.round()
    healer.remove("0")
    healer.round()
    assert healer.heal() == [("0", "recreate", "started")]


def test_more_specific_policies_come_first_and_the_project_comes_last(healer: Healer):
    named(healer)
    healer.policy("off", None)
    healer.world.create("s", {"a": BOX}, environment=GOLD)
    healer.deliver()
    assert mode(healer) == "heal"
    healer.policy("ask")
    assert mode(healer) == "ask"


def test_a_new_policy_of_the_name_replaces_it_and_its_end_leaves_the_default(healer: Healer):
    named(healer)
    healer.world.create("s", {"a": BOX}, environment=GOLD)
    healer.deliver()
    id_ = named(healer, "ask")
    assert mode(healer) == "ask"
    rules.end(healer.world.context, id_)
    assert mode(healer) == "report"
    healer.world.patch("s", tags="x")  # the stack can still be updated
    healer.deliver()
    named(healer)
    assert mode(healer) == "report"


def test_an_update_keeps_and_changes_the_reference(healer: Healer):
    named(healer)
    healer.world.create("s", {"a": BOX}, environment=GOLD)
    healer.deliver()
    healer.world.patch("s", tags="x")
    healer.deliver()
    assert mode(healer) == "heal"
    healer.world.update("s", {"a": BOX})
    healer.deliver()
    assert mode(healer) == "report"


@pytest.mark.parametrize(
    ("environment", "line"), [(GOLD, None), ("parameters: {}\nobservation_policy: gold\n", 2)]
)
def test_an_unknown_name_is_a_fault_with_its_location(healer: Healer, environment: Any, line: int | None):
    with pytest.raises(InvalidTemplate) as refused:
        healer.world.create("s", {"a": BOX}, environment=environment)
    [fault] = refused.value.diagnostics
    assert "no observation policy named 'gold'" in fault.message
    assert (fault.path, fault.file, fault.line) == ("observation_policy", "environment", line)


def test_an_unknown_name_in_a_file_is_located_there(healer: Healer):
    files = {"base.yaml": "parameters: {}\n", "gold.yaml": "observation_policy: gold\n"}
    with pytest.raises(InvalidTemplate) as refused:
        healer.world.create("s", {"a": BOX}, environment_files=["base.yaml", "gold.yaml"], files=files)
    [fault] = refused.value.diagnostics
    assert (fault.file, fault.line) == ("gold.yaml", 1)


@pytest.mark.parametrize("value", ["", 7, ["gold"]])
def test_the_reference_must_be_a_name(healer: Healer, value: Any):
    with pytest.raises(InvalidTemplate, match="must be a name"):
        healer.world.create("s", {"a": BOX}, environment={"observation_policy": value})


@pytest.mark.parametrize(
    "options", [{"name": "a b"}, {"name": "x" * 65}, {"type": "Shelf::Box"}, {"name": 1}]
)
def test_bad_names_and_contradictions_are_refused(healer: Healer, options: dict[str, Any]):
    with pytest.raises(InvalidTemplate):
        named(healer, **options)


def test_a_policy_is_in_force_only_together_with_the_renewal_of_its_decisions(healer: Healer):
    healer.make(a=BOX)
    healer.policy("report")
    healer.policy("ask", stack=None, type="Shelf::Crate")  # the project has a policy for repairs
    healer.remove("a")
    healer.round()
    assert healer.heal() == [("a", "recreate", "reported")]
    body = Body(orjson.dumps({"kind": "policy", "mode": "heal", "stack": "s", "resource": "a"}))
    waiting = "SELECT count(*) AS n FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    in_force = "SELECT count(*) AS n FROM observation_rule WHERE resource = 'a' AND ended_at IS NULL"
    with ThreadPoolExecutor(1) as pool, psycopg.connect(healer.world.database.url) as other:
        other.execute("SELECT 1 FROM repair FOR UPDATE")
        made = pool.submit(rules.create, healer.world.context, body)
        while not healer.world.rows(waiting)[0].n and not made.done():
            pass
        assert healer.world.rows(in_force)[0].n == 0
        other.commit()
        made.result()
    assert healer.world.rows(in_force)[0].n == 1
    healer.world.messages += repair_due_faults(healer.db, healer.world.types)
    assert healer.repairs() == [("a", "recreate", "started")]
