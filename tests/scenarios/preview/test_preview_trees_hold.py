"""A preview of a tree agrees with the following update: random trees with hidden values and groups."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import orjson
import pytest

from orchestrator.operations.context import Body
from orchestrator.operations.preview.update import UpdatePreview, preview_update
from tests.scenarios import templates
from tests.scenarios.preview.test_preview_holds import WEIGHT
from tests.scenarios.simulator import Simulator
from tests.scenarios.templates import Drafts

RESOURCES = """
SELECT s.uuid::text AS stack, r.name, r.physical_id, r.uuid::text AS uuid FROM resource r
JOIN stack s ON s.id = r.stack_id WHERE NOT r.deposed AND s.deleted_at IS NULL
"""
UPDATED = """
SELECT DISTINCT s.uuid::text AS stack, e.resource_name AS name FROM event e JOIN stack s ON s.id = e.stack_id
WHERE e.id > :seen AND e.action = 'UPDATE' AND e.status = 'COMPLETE' AND e.resource_type <> 'OS::Heat::Stack'
"""
Key = tuple[str, str]  # uuid of the stack, name of the resource


@pytest.fixture(scope="module")
def world(new_database: Callable[[], str]) -> Iterator[Simulator]:
    """An installation for all sequences."""
    made = Simulator(new_database())
    yield made
    made.close()


class Request:
    """A random request, as the body of a create or an update."""

    def __init__(self, drafts: Drafts, dice: random.Random) -> None:
        self.drafts = drafts
        self.secret, self.open = dice.choice(["s3cr3t", "t0psecret"]), dice.choice("12")
        self.members, self.hides = dice.choice([0, 1, 2]), dice.random() < 0.7

    def changed(self, dice: random.Random) -> Request:
        """Return a request that differs a little."""
        other = Request(templates.another(self.drafts, dice, 1), dice)
        if dice.random() < 0.5:
            other.secret, other.open = self.secret, self.open
        return other

    def body(self) -> dict[str, Any]:
        """Return the sections of the request."""
        resources = templates.snippets(self.drafts)
        uses = {"list_join": ["-", [{"get_param": "secret"}, {"get_param": "open"}]]}
        value: Any = {"if": ["is_one", "one", uses]}
        resources["own"] = {"type": "Sim::Changeable", "properties": {"a": value}}
        member = {"type": "Sim::Changeable", "properties": {"a": {"get_attr": ["own", "a"]}, "b": "%index%"}}
        resources["group"] = {
            "type": "OS::Heat::ResourceGroup",
            "properties": {"count": self.members, "resource_def": member},
        }
        kid = {
            "heat_template_version": "2021-04-16",
            "parameters": {
                "secret": {"type": "string", **({"hidden": True} if self.hides else {})},
                "open": {"type": "string", "default": "of the child"},
            },
            "resources": {"v": {"type": "Sim::Changeable", "properties": {"a": uses}}},
            "outputs": {"o": {"value": {"get_attr": ["v", "a"]}}},
        }
        resources["kid"] = {"type": "file:///kid.yaml"}
        resources["above"] = {"type": "Sim::Changeable", "properties": {"a": {"get_attr": ["kid", "o"]}}}
        return {
            "resources": resources,
            "parameters": {"secret": {"type": "string", "hidden": True}, "open": {"type": "string"}},
            "conditions": {"is_one": {"equals": [{"get_param": "open"}, "1"]}},
            "files": {**templates.files(self.drafts), "file:///kid.yaml": orjson.dumps(kid).decode()},
            "environment": {
                "parameters": {"open": self.open},
                "parameter_defaults": {"secret": self.secret, "open": "of the environment"},
            },
        }


def foreseen(world: Simulator, sections: Mapping[str, Any]) -> list[UpdatePreview]:
    template = {name: sections[name] for name in ("resources", "parameters", "conditions")}
    body = {name: sections[name] for name in ("files", "environment")}
    body["template"] = {"heat_template_version": "2021-04-16", **template}
    made = preview_update(world.context, world.stack_row("s"), Body(orjson.dumps(body)), show_nested=True)
    return [made, *made.nested]


def changes(previews: list[UpdatePreview]) -> list[str]:
    return [
        f"{one.name}.{item.expected.name} {turn}: {item.expected.because}"
        for one in previews
        for turn, items in one.items.items()
        for item in items
        if turn != "unchanged"
    ]


def known(world: Simulator) -> dict[Key, tuple[str | None, str]]:
    return {(row.stack, row.name): (row.physical_id, row.uuid) for row in world.rows(RESOURCES)}


def compare(world: Simulator, request: Request) -> None:
    """Preview an update, carry it out, and compare: each certain forecast holds, nothing is left out."""
    before = known(world)
    previews = foreseen(world, request.body())
    [seen] = [row.last for row in world.rows("SELECT coalesce(max(id), 0) AS last FROM event")]
    world.update("s", **request.body())
    world.rest()
    after = known(world)
    updated = {(row.stack, row.name) for row in world.rows(UPDATED, seen=seen)}
    stacks = {str(one.stack.uuid): one for one in previews if one.stack is not None}
    told: dict[Key, tuple[str, bool]] = {}
    for uuid, one in stacks.items():
        told |= {(uuid, name): ("unchanged", True) for name in one.unchanged}
        for turn, items in one.items.items():
            told |= {(uuid, item.expected.name): (turn, item.expected.certain) for item in items}
    for key in before.keys() | after.keys():
        if key[0] not in stacks:  # a stack that the update created
            assert key not in before, key
            continue
        assert key in told, f"{key} is not in the preview"
        turn, certain = told[key]
        actual = _actual(key, before, after, updated)
        if certain or turn in ("added", "deleted") or actual in ("added", "deleted"):
            assert actual == turn, (key, turn)
        elif turn != "updated":
            assert WEIGHT[actual] <= WEIGHT[turn], (key, turn)


def _actual(
    key: Key,
    before: Mapping[Key, tuple[str | None, str]],
    after: Mapping[Key, tuple[str | None, str]],
    updated: set[Key],
) -> str:
    if key not in before:
        return "added"
    if key not in after:
        return "deleted"
    if before[key] != after[key]:
        return "replaced"
    return "updated" if key in updated else "unchanged"


def live(world: Simulator, seed: int) -> None:
    """Create a tree, preview the same request, and compare a few updates with their previews."""
    world.reset(seed)
    dice = random.Random(f"preview {seed}")
    request = Request(templates.first(dice, 1), dice)
    try:
        world.create("s", **request.body())
        world.rest()
        assert world.stack().status == "COMPLETE", world.stack().status_reason
        assert changes(foreseen(world, request.body())) == []
        for _ in range(3):
            request = request.changed(dice)
            compare(world, request)
            assert world.stack().status == "COMPLETE", world.stack().status_reason
            assert changes(foreseen(world, request.body())) == []
    except BaseException as error:
        error.add_note(f"seed {seed}")
        raise


@pytest.mark.parametrize("seed", range(6))
def test_previews_of_trees_hold(world: Simulator, seed: int):
    live(world, seed)


@pytest.mark.long
@pytest.mark.parametrize("fifty", range(10))
def test_previews_of_trees_hold_every_time(world: Simulator, fifty: int):
    for seed in range(50 * fifty, 50 * (fifty + 1)):
        live(world, seed)
