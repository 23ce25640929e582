"""Every registered type in a stack: the promises of its contract, observed through the engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import orjson
import pytest

from orchestrator.operations.outputs.outputs import resolve_outputs
from orchestrator.resources.base import ResourceType
from orchestrator.testing.contract import changeable
from orchestrator.testing.samples import Sample, full_properties, other_value
from tests.contract.conftest import all_types
from tests.contract.samples import samples
from tests.plugins.region_fixture import Region
from tests.scenarios.world import World

TYPES, SAMPLES = all_types(), samples()
NAMES = [name for name, kind in TYPES.items() if not kind.hidden and not kind.endpoint_type]

ROW = "SELECT id, uuid, physical_id, action, status FROM resource WHERE name = 'it' AND NOT deposed"


class Stack:
    """A stack with a resource of the type, called "it", and its requirements."""

    def __init__(self, world: World, resource_type: ResourceType, sample: Sample, name: str = "s") -> None:
        self.world, self.kind, self.sample, self.name = world, resource_type, sample, name
        self.properties = full_properties(resource_type, {**sample.properties, **sample.in_stack})
        self.around = {"files": dict(sample.files), "environment": dict(sample.environment)}
        self.uuid = ""

    def resources(self, **changes: Any) -> dict[str, Any]:
        """Return the section of the template, some properties changed."""
        it = {"type": self.kind.name, "properties": {**self.properties, **changes}}
        return {**self.sample.other_resources, "it": it}

    def submit(self, **options: Any) -> Stack:
        """Ask for it; nothing is done yet."""
        self.uuid = self.world.create(self.name, self.resources(), **self.around, **options)
        return self

    def finished(self) -> str:
        """Deliver everything and return the state of the stack.

        A resource that waits for signals keeps its timeout until they have arrived.
        """
        signals = list(self.sample.signals)
        self._deliver(to_rest=not signals)
        while signals and self.world.state(self.uuid).endswith("IN_PROGRESS"):
            self.world.signal(self.name, *signals.pop(0))
            self._deliver(to_rest=not signals)
        return self.world.state(self.uuid)

    def _deliver(self, *, to_rest: bool) -> None:
        while self.world.messages:
            self.world.deliver()
        if to_rest:
            self.world.deliver_all()

    def update(self, **changes: Any) -> str:
        """Change properties and return the stack's state afterwards."""
        self.world.update(self.name, self.resources(**changes), **self.around)
        return self.finished()

    @property
    def row(self) -> Any:
        """The resource's row."""
        (row,) = self.world.rows(
            f"{ROW} AND stack_id = (SELECT id FROM stack WHERE uuid = :uuid)", uuid=self.uuid
        )
        return row

    def outputs(self) -> dict[str, tuple[Any, str | None]]:
        """Return the outputs, each with its error."""
        world = self.world
        stack = world.stack_row(self.name)
        return {
            resolve_output.key: (resolve_output.value, resolve_output.error)
            for resolve_output in resolve_outputs(world.database, world.cipher, stack)
        }


@pytest.fixture(scope="module")
def world(new_database: Callable[[], str], region: Region) -> Iterator[World]:
    """An installation for all tests, and another region for it."""
    made = World(new_database(), types=TYPES, **region.settings())
    yield made
    made.close()


@pytest.fixture(params=NAMES)
def stack(request: pytest.FixtureRequest, world: World) -> Stack:
    """Return a stack of each type in turn, not yet asked for."""
    sample = SAMPLES.get(request.param) or Sample(request.param)
    for name in sample.fixtures:
        request.getfixturevalue(name)
    return Stack(world, TYPES[request.param], sample, f"s{world.random.randrange(10**9)}")


def expected_effects(resource_type: ResourceType) -> dict[str, Any]:
    """Return outputs that tell each attribute and the reference."""
    attributes = {name: {"value": {"get_attr": ["it", name]}} for name in resource_type.attributes}
    return {**attributes, "reference of it": {"value": {"get_resource": "it"}}}


def test_attributes_and_reference_are_there_after_its_creation_and_null_before(stack: Stack):
    stack.submit(outputs=expected_effects(stack.kind))
    assert set(stack.outputs()) == {*stack.kind.attributes, "reference of it"}
    assert {stack.outputs()[name] for name in stack.kind.attributes} <= {(None, None)}
    assert stack.finished() == "CREATE_COMPLETE"
    outputs = stack.outputs()
    reference, error = outputs.pop("reference of it")
    assert (type(reference), error) == (str, None)
    for name, (value, invalid) in outputs.items():
        assert invalid is None, name
        assert value is not None or name in stack.sample.optional, name


def test_secrets_are_sealed_in_the_database(stack: Stack):
    secret = [name for name, attribute in stack.kind.attributes.items() if attribute.secret]
    stack.submit(outputs=expected_effects(stack.kind))
    stack.finished()
    outputs, columns = (
        stack.outputs(),
        "SELECT r::text AS line FROM resource r UNION SELECT e::text FROM event e",
    )
    written = "\n".join(row.line for row in stack.world.rows(columns))
    for name in secret:
        value = outputs[name][0]
        assert value, name
        text = orjson.dumps(value).decode().strip('"')
        assert text == "null" or text not in written, name  # the text of nothing is no secret


def test_an_update_of_nothing_touches_nothing(stack: Stack):
    stack.submit()
    stack.finished()
    before, events = stack.row, stack.world.event_reasons(stack.uuid, "it")
    assert stack.update() == "UPDATE_COMPLETE"
    if stack.kind.always_visited:  # which is replaced by every update
        assert stack.row.uuid != before.uuid
        return
    assert stack.row == before
    assert stack.world.event_reasons(stack.uuid, "it") == events


def test_every_property_is_changed_as_declared(stack: Stack):
    for name, prop in changeable(stack.kind, stack.sample):
        item = Stack(stack.world, stack.kind, stack.sample, f"{stack.name}-{name.replace(':', '-')}").submit()
        assert item.finished() == "CREATE_COMPLETE"
        before = item.row
        state = item.update(**{name: other_value(stack.kind, stack.sample, name)})
        after = item.row
        if name in stack.sample.failing_changes or prop.immutable:
            assert state == "UPDATE_FAILED", name
            continue
        assert state == "UPDATE_COMPLETE", name
        expected = stack.sample.answers.get(name) or ("update" if prop.update_allowed else "replace")
        assert (after.id == before.id) == (expected != "replace"), name
        assert (after.action == "UPDATE") == (expected == "update"), name
        assert len(item.world.rows("SELECT 1 FROM resource WHERE uuid = :u", u=before.uuid)) == (
            expected != "replace"
        ), name


def test_it_is_checked_suspended_resumed_and_deleted(stack: Stack):
    stack.submit()
    stack.finished()
    world, reference = stack.world, stack.row.physical_id
    for action in ("check", "suspend", "resume", "check"):
        world.act(stack.name, action)
        assert stack.finished() == f"{action.upper()}_COMPLETE"
        assert (stack.row.physical_id, stack.row.status) == (reference, "COMPLETE")
    unsupported = f"CHECK not supported for {stack.kind.name}"
    assert any(unsupported in line for line in world.event_reasons(stack.uuid, "it")) != stack.kind.can_check
    world.delete(stack.name)
    assert stack.finished() == "DELETE_COMPLETE"
    assert (
        world.rows(
            "SELECT 1 FROM resource r JOIN stack s ON s.id = r.stack_id WHERE s.uuid = :u", u=stack.uuid
        )
        == []
    )


def test_the_name_of_a_deleted_stack_can_be_used_again(stack: Stack):
    made: list[Mapping[str, Any]] = []
    for _ in range(2):
        stack.submit()
        assert stack.finished() == "CREATE_COMPLETE"
        made.append(stack.row.physical_id)
        stack.world.delete(stack.name)
        assert stack.finished() == "DELETE_COMPLETE"
    assert made[0] != made[1]
