"""The verbs and declarations of docs/plugins.md, in stacks with the types of `tests/plugins/shelf/`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from orchestrator.errors import InvalidTemplate, ProviderBusy, Unavailable
from orchestrator.operations.context import Body
from orchestrator.operations.snapshots import snapshots
from orchestrator.operations.software.api_requests import machine_metadata
from orchestrator.resources.registry import Registry
from orchestrator.store.stacks.resources import get_resource
from tests.scenarios.world import World

PACKAGE = Path(__file__).parents[1] / "plugins" / "shelf"

sys.path.insert(0, str(PACKAGE))  # for as long as it takes to load the package
try:
    from acme_shelf.box import Box
    from acme_shelf.note import Note
    from acme_shelf.rack import Rack
    from acme_shelf.vault import Vault
finally:
    sys.path.remove(str(PACKAGE))

TYPES = dict(Registry.of(Box, Note, Rack, Vault).items())
PLAN = """
heat_template_version: 2021-04-16
parameters:
  litres: {type: number, default: 5}
resources:
  box: {type: Acme::Box, properties: {litres: {get_param: litres}}}
outputs:
  label: {value: {get_attr: [box, label]}}
"""


class Shelf:
    """The files of the service."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def things(self, kind: str = "box") -> dict[str, dict[str, Any]]:
        """The boxes or the copies, by id."""
        return {path.stem: json.loads(path.read_text()) for path in self.folder.glob(f"{kind}-*.json")}

    def change(self, **values: Any) -> None:
        """Change the only box."""
        [(name, box)] = self.things().items()
        (self.folder / f"{name}.json").write_text(json.dumps({**box, **values}))


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    folder = tmp_path / "shelf"
    folder.mkdir()
    monkeypatch.setenv("ACME_SHELF", str(folder))
    return Shelf(folder)


@pytest.fixture
def world(postgres_url: str, shelf: Shelf) -> Iterator[World]:
    world = World(postgres_url, types=TYPES)
    yield world
    world.close()


def vault(**properties: Any) -> dict[str, Any]:
    return {"it": {"type": "Acme::Vault", "properties": properties}}


def create(world: World, resources: dict[str, Any], **request: Any) -> str:
    uuid = world.create("s", resources, **request)
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE", world.stack_row("s").status_reason
    return uuid


def test_a_box_lives_in_a_stack(world: World, shelf: Shelf) -> None:
    box = {"it": {"type": "Acme::Box", "properties": {"litres": 20, "label": "a"}}}
    uuid = create(world, box, outputs={"key": {"value": {"get_attr": ["it", "key"]}}})
    [(name, stored)] = shelf.things().items()
    assert world.outputs("s") == {"key": stored["key"]}
    box["it"]["properties"] = {"litres": 20, "label": "b"}
    world.update("s", box)
    world.deliver_all()
    assert (world.state(uuid), shelf.things()[name]["label"]) == ("UPDATE_COMPLETE", "b")
    for action, state in (("check", "CHECK"), ("suspend", "SUSPEND"), ("resume", "RESUME")):
        world.act("s", action)
        world.deliver_all()
        assert world.state(uuid) == f"{state}_COMPLETE"
        assert shelf.things()[name]["closed"] == (action == "suspend")
    world.delete("s")
    world.deliver_all()
    assert (world.state(uuid), shelf.things()) == ("DELETE_COMPLETE", {})


def test_an_outage_of_the_shelf_is_survived(world: World, shelf: Shelf) -> None:
    uuid = world.create("s", vault())
    away = shelf.folder.rename(shelf.folder.with_name("away"))
    for _ in range(3):
        while world.messages:
            world.deliver()
        world.sweep_once()
    assert world.state(uuid) == "CREATE_IN_PROGRESS"
    away.rename(shelf.folder)
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert len(shelf.things()) == 1


def test_the_rules_of_a_type_are_applied(world: World, shelf: Shelf) -> None:
    with pytest.raises(InvalidTemplate, match="The paint dries too slowly"):
        world.create("s", vault(dry_seconds=10**6))
    with pytest.raises(InvalidTemplate, match="There is no copy lost"):
        world.create("s", vault(source="lost"))


def test_a_change_is_kept_updated_or_replaced(world: World, shelf: Shelf) -> None:
    create(world, vault(label="a", slots=3))
    [first] = shelf.things()
    for label, slots, stored in (("a ", 3, "a"), ("b", 4, "b")):
        world.update("s", vault(label=label, slots=slots))
        world.deliver_all()
        assert shelf.things()[first]["label"] == stored
    shelf.change(closed=True)  # must_replace
    world.update("s", vault(label="c", slots=4))
    world.deliver_all()
    [second] = shelf.things()
    world.update("s", vault(label="c", slots=2))  # change
    world.deliver_all()
    [third] = shelf.things()
    assert len({first, second, third}) == 3


def test_drift_is_reverted(world: World, shelf: Shelf) -> None:
    create(world, vault(label="a"))
    shelf.change(label="by hand")
    world.patch("s", converge=True)
    world.deliver_all()
    assert [box["label"] for box in shelf.things().values()] == ["a"]


def test_actions_signals_and_metadata(world: World, shelf: Shelf) -> None:
    uuid = create(world, vault(), outputs={"rings": {"value": {"get_attr": ["it", "rings"]}}})
    world.act("s", "check")
    world.deliver_all()
    assert [box["checks"] for box in shelf.things().values()] == [1]
    world.signal("s", "it", {"by": "me"})
    world.deliver_all()
    assert world.outputs("s") == {"rings": [{"by": "me"}]}
    assert "SIGNAL_COMPLETE Signal: ring 1" in world.event_reasons(uuid, "it")
    stack = world.stack_row("s")
    row = get_resource(world.database, stack, "it")
    assert row is not None
    shown = machine_metadata(world.context, stack, row, TYPES["Acme::Vault"], None)
    assert shown["key"] == next(iter(shelf.things().values()))["key"]


@pytest.mark.parametrize("error", [ProviderBusy("no answer"), ConnectionError("refused")])
def test_metadata_of_a_vault_without_an_answer_are_unavailable(
    world: World, shelf: Shelf, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    create(world, vault())
    stack = world.stack_row("s")
    row = get_resource(world.database, stack, "it")
    assert row is not None
    type_ = TYPES["Acme::Vault"]
    monkeypatch.setattr(type(type_), "published", Mock(side_effect=error))
    with pytest.raises(Unavailable, match=f"metadata of it cannot be read at the moment: {error}"):
        machine_metadata(world.context, stack, row, type_, None)


def test_a_failed_vault_that_works_again_is_kept(world: World, shelf: Shelf) -> None:
    uuid = create(world, vault())
    [first] = shelf.things()
    shelf.change(broken=True)
    world.act("s", "check")
    world.deliver_all()
    assert world.state(uuid) == "CHECK_FAILED"
    shelf.change(broken=False)
    world.patch("s")
    world.deliver_all()
    assert (world.state(uuid), [*shelf.things()]) == ("UPDATE_COMPLETE", [first])


def test_an_unfinished_create_is_cancelled_for_a_newer_template(world: World, shelf: Shelf) -> None:
    uuid = world.create("s", vault(dry_seconds=3000))
    while world.messages:
        world.deliver()
    [wet] = shelf.things()
    world.update("s", vault(label="b"))
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert wet not in shelf.things()


def test_a_note_waits_for_its_readers(world: World) -> None:
    uuid = world.create("s", {"it": {"type": "Acme::Note", "properties": {"readers": 2}}})
    while world.messages:
        world.deliver()
    world.signal("s", "it", {"by": "a"})
    while world.messages:
        world.deliver()
    assert world.state(uuid) == "CREATE_IN_PROGRESS"
    world.update("s", {"it": {"type": "Acme::Note", "properties": {"readers": 1}}})
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"


def test_a_rack_is_a_stack_of_boxes(world: World, shelf: Shelf) -> None:
    rack = {"it": {"type": "Acme::Rack", "properties": {"plan": "plan.yaml"}}}
    outputs = {"label": {"value": {"get_attr": ["it", "Rack.label"]}}}
    uuid = create(world, rack, files={"plan.yaml": PLAN}, outputs=outputs)
    assert world.outputs("s") == {"label": ""}
    world.delete("s")
    world.deliver_all()
    assert (world.state(uuid), shelf.things()) == ("DELETE_COMPLETE", {})


def test_a_vault_is_copied_and_restored(world: World, shelf: Shelf) -> None:
    uuid = create(world, vault(label="a"))
    taken = snapshots.take(world.context, world.stack_row("s"), Body(b"{}"))
    world.messages += taken.messages
    world.deliver_all()
    [copy] = shelf.things("copy")
    world.update("s", vault(label="b"))
    world.deliver_all()
    snapshot = str(taken.snapshot.uuid)
    world.messages += snapshots.restore(world.context, world.stack_row("s"), snapshot)
    world.deliver_all()
    assert world.state(uuid) == "RESTORE_COMPLETE"
    assert [(box["label"], box["source"]) for box in shelf.things().values()] == [("a", copy)]
    snapshots.remove(world.context, world.stack_row("s"), snapshot)
    world.deliver_all()
    assert shelf.things("copy") == {}
