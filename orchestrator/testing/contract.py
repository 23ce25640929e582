"""The contract of every resource type. A new type must pass it before type-specific tests.

    from orchestrator.testing.contract import TypeContract
    from orchestrator.testing.samples import Sample

    class TestVolume(TypeContract):
        @pytest.fixture
        def sample(self):
            return Sample("Example::Volume", {"size": 1})

A fixture that the type requires (such as a server) is named in the sample, or used by `sample` itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Final

import jsonschema
import orjson
import pytest

from orchestrator.engine.check.property_diff import as_stored, property_change
from orchestrator.errors import NotSupported
from orchestrator.json_types import JsonMapping
from orchestrator.resources.base import Property, ResourceType
from orchestrator.resources.registry import load_registry
from orchestrator.resources.type_schema import SUPPORT_STATUSES, type_schema, type_template
from orchestrator.resources.verbs.values import found_ids
from orchestrator.schema.properties import TYPES, convert
from orchestrator.template.parse import Limits
from orchestrator.template.template import load
from orchestrator.testing.fault_contract import FaultContract
from orchestrator.testing.operated import Operated, is_fine
from orchestrator.testing.release_contract import ReleaseContract
from orchestrator.testing.samples import Sample, full_properties, other_value

SCHEMA_OF_A_PROPERTY: Final = {
    "type": "object",
    "required": ["type", "required", "update_allowed", "immutable"],
    "properties": {
        "type": {"enum": list(TYPES)},
        "required": {"type": "boolean"},
        "update_allowed": {"type": "boolean"},
        "immutable": {"type": "boolean"},
        "description": {"type": "string", "minLength": 1},
        "constraints": {"type": "array", "items": {"type": "object"}},
        "schema": {"type": "object", "additionalProperties": {"$ref": "#/$defs/property"}},
        "default": {},
    },
    "additionalProperties": False,
}
SCHEMA_OF_A_TYPE: Final = {
    "$defs": {"property": SCHEMA_OF_A_PROPERTY},
    "type": "object",
    "required": ["resource_type", "properties", "attributes", "support_status", "description"],
    "properties": {
        "resource_type": {"type": "string", "pattern": "^[A-Za-z]+(::[A-Za-z0-9]+)+$"},
        "properties": {"type": "object", "additionalProperties": {"$ref": "#/$defs/property"}},
        "attributes": {
            "type": "object",
            "required": ["show"],
            "additionalProperties": {"type": "object", "required": ["description"]},
        },
        "support_status": {
            "type": "object",
            "required": ["status", "message", "version", "previous_status"],
            "properties": {"status": {"enum": list(SUPPORT_STATUSES)}},
        },
        "description": {"type": "string", "minLength": 1},
    },
    "additionalProperties": False,
}


class Declarations:
    """The declarations of a type; applies to all types, nested types included."""

    @pytest.fixture
    def sample(self) -> Sample:
        """Return the sample; each subclass overrides it."""
        raise NotImplementedError("the class needs a fixture `sample`")

    @pytest.fixture
    def kind(self, sample: Sample) -> ResourceType:
        """Return the type from the registry, as the orchestrator does."""
        return load_registry()[sample.type]

    def test_its_schema_is_serializable(self, kind: ResourceType) -> None:
        if kind.hidden:
            with pytest.raises(NotSupported):
                type_schema({kind.name: kind}, kind.name)
            return
        schema = type_schema({kind.name: kind}, kind.name, with_description=True)
        jsonschema.validate(orjson.loads(orjson.dumps(schema)), SCHEMA_OF_A_TYPE)

    @pytest.mark.parametrize("dialect", ["hot", "cfn"])
    def test_a_template_of_it_can_be_generated_and_read(self, kind: ResourceType, dialect: str) -> None:
        if kind.hidden:
            with pytest.raises(NotSupported):
                type_template({kind.name: kind}, kind.name, dialect)
            return
        template = load(as_stored(type_template({kind.name: kind}, kind.name, dialect)), Limits())
        assert [one.type for one in template.resources.values()] == [kind.name]
        assert set(kind.attributes) <= set(template.outputs)

    def test_its_properties_are_declared_without_contradiction(self, kind: ResourceType) -> None:
        for name, prop in declared({**kind.properties, **kind.update_policy}):
            assert prop.type in TYPES, name
            assert not (prop.update_allowed and prop.immutable), name
            assert not (prop.required and prop.default is not None), name
            assert prop.schema is None or prop.type in ("map", "list"), name
            assert isinstance(prop.schema, Property) == (prop.type == "list" and prop.schema is not None), (
                name
            )
            for constraint in prop.constraints:
                assert prop.type in constraint.types, name

    def test_what_it_declares_about_early_dependents_exists(self, kind: ResourceType) -> None:
        assert kind.early_attributes <= kind.attributes.keys() - kind.live_attributes
        assert isinstance(kind.needs_ready, bool) or kind.needs_ready <= kind.properties.keys()

    def test_its_defaults_obey_its_own_schema(self, kind: ResourceType) -> None:
        defaults = {name: prop.default for name, prop in kind.properties.items() if prop.default is not None}
        optional = {name: prop for name, prop in kind.properties.items() if not prop.required}
        converted, faults = convert(optional, defaults)
        assert faults == []
        assert convert(optional, converted) == (converted, [])

    def test_it_has_an_opinion_on_incomplete_properties_only_when_it_can(self, kind: ResourceType) -> None:
        assert list(kind.validate({}, 3600.0)) == []

    def test_the_sample_itself_is_fine(self, kind: ResourceType, sample: Sample) -> None:
        properties, faults = kind.read_properties(full_properties(kind, sample.properties))
        assert faults == []
        assert list(kind.validate(properties, 3600.0)) == []

    def test_unchanged_properties_are_no_change(self, kind: ResourceType, sample: Sample) -> None:
        given = full_properties(kind, sample.properties)
        before, after = (as_stored(kind.read_properties(given)[0]) for _ in range(2))
        assert kind.always_visited or property_change(kind, before, after).change == "keep"

    def test_a_change_has_the_declared_effect(self, kind: ResourceType, sample: Sample) -> None:
        given = full_properties(kind, sample.properties)
        for name, prop in changeable(kind, sample):
            before, after = (
                as_stored(kind.read_properties(one)[0])
                for one in (given, {**given, name: other_value(kind, sample, name)})
            )
            assert before != after, name
            revised = property_change(kind, before, after)
            if prop.immutable:
                assert name in revised.immutable
                continue
            expected = sample.answers.get(name) or ("update" if prop.update_allowed else "replace")
            assert revised.change == expected, name


class TypeContract(Declarations, FaultContract, ReleaseContract):
    """A type that implements its verbs: every type except nested types."""

    @pytest.fixture
    def operate(
        self, kind: ResourceType, sample: Sample, request: pytest.FixtureRequest
    ) -> Iterator[Callable[[], Operated]]:
        """Return a factory of resources that are not created yet. Objects that a test leaves, or has created
        before it failed, are deleted.
        """
        for name in sample.fixtures:
            request.getfixturevalue(name)
        made: list[Operated] = []

        def factory() -> Operated:
            made.append(Operated(kind, sample.properties, sample))
            return made[-1]

        yield factory
        for operated in made:
            operated.clean_up()

    @pytest.fixture
    def operated(self, operate: Callable[[], Operated]) -> Operated:
        """Return a resource that is not created yet."""
        return operate()

    # Creating.

    def test_create_returns_an_id_and_the_object_becomes_ready(self, operated: Operated) -> None:
        created = operated.create()
        assert created.physical_id
        assert orjson.loads(orjson.dumps(created.data)) == created.data
        assert is_fine(operated.settled())

    def test_every_verb_returns_at_once(self, operated: Operated) -> None:
        for verb in (operated.create, operated.observe, operated.delete, operated.observe):
            began = time.monotonic()
            verb()
            assert time.monotonic() - began < operated.sample.call_seconds

    def test_find_returns_the_object_of_an_interrupted_create(self, operated: Operated) -> None:
        kind, ctx = operated.kind, operated.ctx
        if not kind.can_find:
            return  # its creates are never repeated: their outcome is "unknown"
        if kind.calls_out:
            assert found_ids(kind.find(ctx, ctx.token)) == ()
        operated.create()
        if kind.calls_out:
            assert found_ids(kind.find(ctx, ctx.token)) == (operated.physical_id,)
            assert found_ids(kind.find(replace(ctx, token="another"), "another")) == ()  # noqa: S106

    def test_a_local_type_may_be_created_twice(self, operated: Operated) -> None:
        if operated.kind.calls_out:
            return  # `find` covers this case
        operated.create()
        operated.create()
        assert is_fine(operated.settled())

    def test_a_failed_object_is_replaced_under_a_new_token(self, operated: Operated) -> None:
        kind, first = operated.kind, operated.ctx.token
        operated.create()
        operated.delete()
        assert not operated.settled().exists
        operated.create_again()
        assert operated.ctx.token != first
        assert is_fine(operated.settled())
        if kind.calls_out and kind.can_find:
            assert found_ids(kind.find(operated.ctx, operated.ctx.token)) == (operated.physical_id,)
            assert found_ids(kind.find(replace(operated.ctx, token=first), first)) == ()

    # Observing.

    def test_looking_changes_nothing(self, operated: Operated) -> None:
        operated.create()
        first, before = operated.settled(), operated.ctx
        assert operated.observe() == operated.observe()
        assert operated.ctx == before
        checked = operated.observe("CHECK")
        assert is_fine(checked)
        assert (checked.attributes, checked.reference_id) == (first.attributes, first.reference_id)

    def test_attributes_are_those_declared_and_can_be_stored(self, operated: Operated) -> None:
        operated.create()
        observation, kind = operated.settled(), operated.kind
        assert set(kind.attributes) - operated.sample.optional - kind.live_attributes <= set(
            observation.attributes
        )
        assert not kind.live_attributes & observation.attributes.keys()
        assert orjson.loads(orjson.dumps(observation.attributes)) == observation.attributes
        assert all(kind.has_attribute(name) for name in {*kind.attributes, *observation.attributes, "show"})

    def test_early_attributes_stay(self, operated: Operated) -> None:
        if early := operated.kind.early_attributes:
            operated.create()
            first, settled = operated.observe(), operated.settled()
            for name in early & first.attributes.keys():
                assert settled.attributes[name] == first.attributes[name], name

    def test_live_attributes_are_those_declared_and_can_be_stored(self, operated: Operated) -> None:
        operated.create()
        assert is_fine(operated.settled())
        live = operated.kind.live_attributes
        if live:
            values = operated.kind.read_attributes(operated.ctx, operated.physical_id or "", live)
            assert set(values) <= live
            assert live - operated.sample.optional <= set(values)
            assert orjson.loads(orjson.dumps(values)) == values

    def test_its_reference_is_a_text_that_stays(self, operated: Operated) -> None:
        operated.create()
        observation = operated.settled()
        assert isinstance(observation.reference_id, str | None)
        assert observation.reference_id != ""
        assert operated.observe("CHECK").reference_id == observation.reference_id

    def test_secrets_are_not_stored_unencrypted(self, operated: Operated) -> None:
        created = operated.create()
        observation, kind = operated.settled(), operated.kind
        stored = orjson.dumps(created.data).decode()
        for name, attribute in kind.attributes.items():
            value = observation.attributes.get(name)
            if attribute.secret and value and not created.secret:
                assert orjson.dumps(value).decode().strip('"') not in stored, name

    # Changing.

    def test_every_property_that_may_be_is_changed_in_place(
        self, operate: Callable[[], Operated], sample: Sample
    ) -> None:
        for name, prop in changeable(operate().kind, sample):
            if not prop.update_allowed or sample.answers.get(name, "update") != "update":
                continue
            operated = operate()
            operated.create()
            assert is_fine(operated.settled()), name
            value = other_value(operated.kind, sample, name)
            before = operated.physical_id
            operated.update(**{name: value})
            operated.update(**{name: value})  # the worker may have died before it recorded the first attempt
            observation = operated.settled()
            assert observation.exists, name
            assert bool(observation.error) == (name in sample.failing_changes), (name, observation.error)
            assert operated.physical_id == before or operated.kind.calls_out, name
            operated.delete()
            assert not operated.settled().exists, name

    def test_an_update_of_nothing_but_metadata_is_fine(self, operated: Operated) -> None:
        operated.create()
        operated.settled()
        operated.ctx = replace(operated.ctx, metadata={"a": 1}, action="UPDATE")
        assert is_fine(operated.settled())

    # Pausing, copying.

    def test_suspend_and_resume_change_nothing_else(self, operated: Operated) -> None:
        operated.create()
        made = operated.settled()
        for action in ("SUSPEND", "RESUME"):
            operated.pause(action)
            operated.pause(action)
            observation = operated.settled()
            assert is_fine(observation), action
            assert observation.reference_id == made.reference_id, action
        assert operated.observe("CHECK").attributes == made.attributes

    def test_a_copy_is_made_once_a_token_and_removed_twice(self, operated: Operated) -> None:
        kind = operated.kind
        if not kind.can_copy:
            return
        operated.create()
        operated.settled()
        stored = operated.snapshot()
        assert kind.snapshot(operated.ctx, operated.physical_id) == stored
        assert is_fine(operated.settled())
        assert isinstance(kind.restored(operated.properties, stored), Mapping)
        for notes in (stored, stored, {}):
            kind.delete_snapshot(operated.ctx, notes)

    # Deleting.

    def test_delete_may_run_twice(self, operated: Operated) -> None:
        operated.create()
        operated.settled()
        for _ in range(2):
            operated.delete()
            assert not operated.settled().exists

    def test_delete_accepts_an_unfinished_object(self, operated: Operated) -> None:
        operated.create()
        operated.delete()
        assert not operated.settled().exists

    def test_delete_accepts_lost_data(self, operated: Operated) -> None:
        operated.create()
        operated.ctx = replace(operated.ctx, data={}, properties={})
        operated.delete()
        assert not operated.settled().exists

    def test_recovery_after_a_failure_can_be_queried(self, operated: Operated) -> None:
        operated.create()
        operated.settled()
        assert operated.kind.is_healthy_after_failure(operated.ctx, operated.physical_id) in (True, False)
        assert operated.observe("CHECK").exists


class HiddenContract(Declarations):
    """A type stored for existing stacks: it must support deletion."""

    def test_an_existing_resource_can_be_deleted_twice(self, kind: ResourceType, sample: Sample) -> None:
        operated = Operated(kind, sample.properties, sample)
        operated.physical_id = "left-from-before"
        for _ in range(2):
            operated.delete()
            assert not operated.settled().exists


def changeable(kind: ResourceType, sample: Sample) -> Iterator[tuple[str, Property]]:
    """Yield the properties that can be set and that the tests should change."""
    for name, prop in kind.properties.items():
        if prop.implemented and name not in sample.slow_changes:
            yield name, prop


def declared(schema: JsonMapping) -> Iterator[tuple[str, Property]]:
    """Yield properties and their members."""
    for name, prop in schema.items():
        yield name, prop
        if isinstance(prop.schema, Property):
            yield from declared({f"{name}[]": prop.schema})
        elif prop.schema is not None:
            yield from declared(dict(prop.schema))
