"""What holds for every registered type. A new one passes this before anything else is said about it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import jsonschema
import orjson
import pytest

from orchestrator.resources.base import Property, ResourceType
from orchestrator.resources.catalogue import SUPPORT_STATUSES, type_schema, type_template
from orchestrator.resources.registry import Registry
from orchestrator.schema.properties import TYPES, convert

AT_ONCE_SECONDS = 2.0  # far above what a call to a healthy service takes, far below any wait

SCHEMA_OF_A_PROPERTY = {
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
SCHEMA_OF_A_TYPE = {
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


def declared(schema: dict[str, Property]) -> Iterator[tuple[str, Property]]:
    """Go over properties and their members."""
    for name, prop in schema.items():
        yield name, prop
        if isinstance(prop.schema, Property):
            yield from declared({f"{name}[]": prop.schema})
        elif prop.schema is not None:
            yield from declared(dict(prop.schema))


def test_its_schema_can_be_told_to_anybody(kind: ResourceType, installed: Registry):
    schema = orjson.loads(orjson.dumps(type_schema(installed, kind.name, with_description=True)))
    jsonschema.validate(schema, SCHEMA_OF_A_TYPE)


@pytest.mark.parametrize("dialect", ["hot", "cfn"])
def test_a_template_of_it_can_be_generated(kind: ResourceType, installed: Registry, dialect: str):
    template = type_template(installed, kind.name, dialect)
    assert kind.name in orjson.dumps(template).decode()


def test_its_properties_are_declared_without_contradiction(kind: ResourceType):
    for name, prop in declared(dict(kind.properties)):
        assert prop.type in TYPES, name
        assert not (prop.update_allowed and prop.immutable), name
        assert not (prop.required and prop.default is not None), name
        assert prop.schema is None or prop.type in ("map", "list"), name
        assert isinstance(prop.schema, Property) == (prop.type == "list" and prop.schema is not None), name
        for constraint in prop.constraints:
            assert prop.type in constraint.types, name


def test_its_defaults_obey_its_own_schema(kind: ResourceType):
    defaults = {name: prop.default for name, prop in kind.properties.items() if prop.default is not None}
    required = {name: prop for name, prop in kind.properties.items() if not prop.required}
    assert convert(required, defaults) == (defaults, [])


def test_it_has_an_opinion_on_incomplete_properties_only_when_it_can(kind: ResourceType):
    assert list(kind.validate({}, 3600.0)) == []


def test_creating_gives_an_id_and_the_thing_is_observed_in_time(operated):
    created = operated.create()
    assert created.physical_id
    assert orjson.loads(orjson.dumps(created.data)) == created.data
    seen = operated.observe()
    assert (seen.exists, seen.ready, seen.error) == (True, True, "")


def test_every_verb_returns_at_once(operated):
    for verb in (operated.create, operated.observe, operated.delete, operated.observe):
        began = time.monotonic()
        verb()
        assert time.monotonic() - began < AT_ONCE_SECONDS


def test_looking_changes_nothing(operated):
    operated.create()
    before = operated.ctx
    first, second = operated.observe(), operated.observe()
    assert first == second
    assert operated.ctx == before
    assert operated.observe("CHECK") == first


def test_attributes_are_those_declared_and_can_be_stored(operated):
    operated.create()
    seen = operated.observe()
    assert set(seen.attributes) == set(operated.kind.attributes)
    assert orjson.loads(orjson.dumps(seen.attributes)) == seen.attributes
    assert all(operated.kind.has_attribute(name) for name in seen.attributes)


def test_what_an_interrupted_create_made_is_found_by_its_token(operated):
    kind, ctx = operated.kind, operated.ctx
    assert kind.find(ctx, ctx.token) is None
    operated.create()
    found = kind.find(ctx, ctx.token)
    assert found == (operated.physical_id if kind.calls_out else None)
    assert kind.find(replace(ctx, token="another"), "another") is None


def test_a_type_that_keeps_its_thing_in_our_row_may_be_created_twice(operated):
    if operated.kind.calls_out:
        pytest.skip("its thing is elsewhere: it is found by its token instead")
    first = operated.create()
    second = operated.create()
    assert first.physical_id == second.physical_id or operated.kind.any_properties
    assert operated.observe().exists


def test_deleting_twice_is_fine_and_then_it_is_gone(operated):
    operated.create()
    operated.delete()
    assert not operated.observe().exists
    operated.delete()
    assert not operated.observe().exists


def test_deleting_what_lost_its_notes_is_fine(operated):
    operated.create()
    operated.ctx = replace(operated.ctx, data={}, properties={})
    operated.delete()
    assert not operated.observe().exists


def test_unchanged_properties_are_no_change(kind: ResourceType):
    assert kind.change({}, {}, frozenset()) == "keep"


def test_only_what_may_be_updated_is_updated_in_place(kind: ResourceType):
    for name, prop in kind.properties.items():
        change = kind.change({name: 1}, {name: 2}, frozenset({name}))
        assert change == ("keep" if kind.any_properties else "update" if prop.update_allowed else "replace")
