"""The forecast for each resource, as far as its values are known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.engine.check.property_diff import property_change, with_drift
from orchestrator.engine.preview.forecast import Forecast
from orchestrator.engine.preview.property_forecast import mentioned
from orchestrator.engine.preview.results import CurrentResource, ForecastResource
from orchestrator.engine.validation.type_resolution import TypeEnvironment, TypeResolver
from orchestrator.resources.base import Attribute, Context, Created, Observation, Property, ResourceType
from orchestrator.schema.translation import Replace
from orchestrator.template.environment import Environment
from orchestrator.template.parameters import ParameterValues
from orchestrator.template.parse import Limits
from orchestrator.template.secret_values import NO_SECRETS, SecretValues
from orchestrator.template.template import load


class Thing(ResourceType):
    """A type of another package; its size can be updated, its place requires a replacement, its owner is
    fixed.
    """

    name = "A::Thing"
    properties = {  # noqa: RUF012
        "size": Property("any", update_allowed=True),
        "place": Property("any"),
        "owner": Property("string", immutable=True),
    }
    attributes = {"address": Attribute("Where it is."), "key": Attribute("Secret.", secret=True)}  # noqa: RUF012


class Noted(Thing):
    """The same, of our own."""

    name = "A::Noted"
    calls_out = False

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Any], changed: frozenset[str]
    ) -> Created:
        if props["size"] == "boom":
            raise RuntimeError("boom")
        return Created(physical_id, {"size": props["size"]})

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        return Observation(True, ready=ctx.data["size"] != "slow", attributes={"address": ctx.data["size"]})


class Renamed(Thing):
    """A thing with a renamed property."""

    name = "A::Renamed"
    properties = {**Thing.properties, "mass": Property("any")}  # noqa: RUF012
    translation = (Replace(("size",), source=("mass",)),)


TYPES = {kind.name: kind() for kind in (Thing, Noted, Renamed)}


def current_resource(name: str, kind: str = "A::Thing", **options: Any) -> CurrentResource:
    facts: dict[str, Any] = {
        "id": 1,
        "uuid": "11111111-1111-4111-8111-111111111111",
        "name": name,
        "type": kind,
        "resource_type": kind,
        "action": "CREATE",
        "status": "COMPLETE",
        "status_reason": "state changed",
        "op": None,
        "physical_id": f"{name}-1",
        "reference_id": None,
        "properties": {"size": 1},
        "attributes": {"address": "here"},
        "data": {},
        "metadata": None,
        "secret": False,
        "secrets": NO_SECRETS,
    }
    return CurrentResource(**{**facts, **options})


def forecast(resources: Mapping[str, Any], parameters: Mapping[str, Any] | None = None) -> Forecast:
    declared = {name: {"type": "string", "hidden": True} for name in parameters or {}}
    whole = {"heat_template_version": "2021-04-16", "resources": resources, "parameters": declared}
    values = ParameterValues(dict(parameters or {}), frozenset(declared))
    kinds = TypeResolver(TypeEnvironment.of_stack(TYPES, Environment(), {}, Limits()))
    return Forecast(load(whole, Limits(), values), values, kinds, {}.get, "s")


def thing(kind: str = "A::Thing", **properties: Any) -> dict[str, Any]:
    return {"type": kind, "properties": properties}


def b_expected(
    a: dict[str, Any], b: dict[str, Any], of_a: CurrentResource, of_b: CurrentResource
) -> ForecastResource:
    """Return the forecast for b, which requires a."""
    made = forecast({"a": a, "b": b})
    made.visit("a", of_a)
    return made.visit("b", of_b, dirty=False)


ID = {"get_resource": "a"}
ADDRESS = {"get_attr": ["a", "address"]}
REPLACED = thing(place="there"), current_resource("a", properties={"place": "here"})
CHANGED = thing(size=2), current_resource("a")


@pytest.mark.parametrize(
    ("a", "b", "before", "turn", "certain"),
    [
        (REPLACED, thing(size=ID), {"size": "a-1"}, "updated", True),
        (REPLACED, thing(place=ID), {"place": "a-1"}, "replaced", True),
        (REPLACED, thing(size=ADDRESS), {"size": "here"}, "updated", False),
        (REPLACED, thing(place=ADDRESS), {"place": "here"}, "replaced", False),
        (REPLACED, thing(place=ADDRESS, size=ID), {"place": "here", "size": "a-1"}, "replaced", False),
        (REPLACED, thing(size={"filter": [[ID], ["x"]]}), {"size": ["x"]}, "unchanged", True),
        (REPLACED, thing(size={"list_join": ["-", [ID, ID]]}), {"size": "a-1-a-1"}, "updated", True),
        (REPLACED, thing(size=3), {"size": 3}, "unchanged", True),
        (CHANGED, thing(size=ID), {"size": "a-1"}, "unchanged", True),
        (CHANGED, thing(size=ADDRESS), {"size": "here"}, "updated", False),
        (CHANGED, thing(place=ADDRESS, size=3), {"place": "here", "size": 2}, "replaced", False),
    ],
)
def test_consequences_of_another_change(a, b, before, turn, certain):
    result = b_expected(*a[:1], b, a[1], current_resource("b", properties=before))
    assert (result.turn, result.certain) == (turn, certain)


def test_an_id_that_may_stay_makes_nothing_sure():
    made = forecast({"a": thing(size=2), "b": thing(place=ADDRESS), "c": thing(size={"get_resource": "b"})})
    made.visit("a", current_resource("a"))
    b = made.visit("b", current_resource("b", properties={"place": "here"}), dirty=False)
    c = made.visit("c", current_resource("c", properties={"size": "b-1"}), dirty=False)
    assert (b.turn, b.certain, b.because) == (
        "replaced",
        False,
        "place may change, which requires a replacement (a is changed)",
    )
    assert (c.turn, c.certain, c.because) == ("updated", False, "size may change (b may be replaced)")
    assert (c.changed, c.unknown) == ({"size": ("b-1", None)}, ("size",))


@pytest.mark.parametrize(
    ("size", "turn", "after"),
    [("new", "updated", "new"), ("slow", "updated", None), ("boom", "updated", None)],
)
def test_a_local_type_forecasts_its_attributes_if_it_can(size, turn, after):
    of_a = current_resource(
        "a", "A::Noted", properties={"size": "old"}, attributes={"address": "old"}, data={"size": "old"}
    )
    result = b_expected(
        thing("A::Noted", size=size),
        thing(size=ADDRESS),
        of_a,
        current_resource("b", properties={"size": "old"}),
    )
    assert (result.turn, result.certain, result.changed) == (
        turn,
        after is not None,
        {"size": ("old", after)},
    )


def test_resources_under_operation_have_unknown_attributes():
    for op, physical_id, requests in (
        ("CREATE", None, ID),
        ("CREATE", "a-1", ADDRESS),
        ("UPDATE", "a-1", ADDRESS),
    ):
        of_a = current_resource("a", op=op, status="IN_PROGRESS", physical_id=physical_id)
        result = b_expected(
            thing(size=1), thing(size=requests), of_a, current_resource("b", properties={"size": "x"})
        )
        assert (result.turn, result.unknown) == ("updated", ("size",))


def test_many_causes_are_named_by_the_first():
    many = {f"a{n}": thing(place="there") for n in range(5)}
    made = forecast({**many, "b": thing(size=[{"get_resource": name} for name in many])})
    for name in many:
        made.visit(name, current_resource(name, properties={"place": "here"}))
    result = made.visit("b", current_resource("b", properties={"size": []}), dirty=False)
    causes = "a0 is replaced, a1 is replaced, a2 is replaced, 2 more"
    assert result.because == f"size changes ({causes})"


def test_a_failed_resource_is_observed_before_its_replacement_is_certain():
    made = forecast({"a": thing(size=1)})
    failed = current_resource("a", status="FAILED", status_reason="no luck")
    result = made.visit("a", failed)
    assert (result.turn, result.certain, result.because) == ("replaced", False, "it has failed: no luck")
    result = made.visit("a", failed, observation=Observation(True))
    assert (result.turn, result.because) == ("unchanged", "it failed earlier and is healthy now")
    result = made.visit("a", failed, observation=Observation(True, ready=False))
    assert (result.turn, result.certain) == ("unchanged", False)
    assert made.visit("a", failed, observation=Observation(False)).turn == "replaced"
    marked = replace(failed, marked_unhealthy=True)
    assert made.visit("a", marked, observation=Observation(True)).certain
    assert made.visit("a", marked, observation=Observation(True)).turn == "replaced"


def test_a_failed_resource_that_may_be_healthy_is_possibly_replaced(monkeypatch):
    made = forecast({"a": thing(size=1)})
    failed = current_resource("a", status="FAILED", status_reason="no luck")
    monkeypatch.setattr(TYPES["A::Thing"], "judges_health", True)
    assert not made.visit("a", failed).certain
    assert made.visit("a", failed, well=False).certain
    result = made.visit("a", failed, well=True)
    assert (result.turn, result.because) == ("unchanged", "it failed earlier and is healthy now")
    result = made.visit("a", current_resource("a", action="UPDATE", status="FAILED"), well=True)
    assert (result.turn, result.because) == ("updated", "its last update failed")


def test_a_broken_resource_is_replaced():
    made = forecast({"a": thing(size=1)})
    result = made.visit("a", current_resource("a"), observation=Observation(True, error="no disk"))
    assert (result.turn, result.because) == ("replaced", "it is broken: no disk")


def test_a_secret_is_masked_wherever_a_translation_puts_it():
    made = forecast({"a": thing("A::Renamed", mass={"get_param": "p"})}, {"p": "sesame"})
    result = made.visit("a", current_resource("a", "A::Renamed"))
    assert result.changed == {"size": ("******", "******")}


@pytest.mark.parametrize(
    ("recorded", "shown"),
    [
        (NO_SECRETS, {"size": (1, 2), "place": ("x", "y")}),
        (SecretValues({"x"}), {"size": (1, 2), "place": ("******", "y")}),
        (None, {"size": ("******", 2), "place": ("******", "y")}),
    ],
)
def test_recorded_values_of_an_encrypted_resource_are_masked_by_value(recorded, shown):
    made = forecast({"a": thing(size=2, place="y")})
    before = current_resource("a", properties={"size": 1, "place": "x"}, secret=True, secrets=recorded)
    assert made.visit("a", before).changed == shown


def test_a_comparison_names_changed_and_immutable_properties():
    resource_type = TYPES["A::Thing"]
    assert property_change(resource_type, {"size": 1}, {"size": 1}).change == "keep"
    assert property_change(resource_type, {"size": 1}, {"size": 1}, None, {"k": 1}).change == "update"
    assert property_change(resource_type, {"size": 1}, {"size": 1}, None, {}).change == "keep"
    result = property_change(resource_type, {"size": 1, "owner": "x"}, {"size": 2, "owner": "y"})
    assert (result.change, result.changed, result.immutable) == ("replace", {"size", "owner"}, ("owner",))
    result = property_change(resource_type, {"size": 1}, {"size": 1}, also=frozenset({"size"}))
    assert (result.change, result.changed) == ("update", {"size"})
    assert property_change(resource_type, {}, {}, also=frozenset({"owner"})).immutable == ("owner",)


def test_values_chosen_by_the_provider_are_not_drift():
    kind, observed = (
        TYPES["A::Thing"],
        Observation(True, properties={"size": 9, "place": "there", "colour": "red"}),
    )
    assert with_drift(kind, {"size": 1, "place": "here"}, {}, observed) == {"size": 9, "place": "here"}
    assert with_drift(kind, {}, {"size": 1}, observed) == {"size": 9}
    assert with_drift(kind, {}, {}, observed) == {}
    assert with_drift(kind, {"size": 1}, {}, Observation(True)) == {"size": 1}


def test_an_observed_value_that_is_equal_for_the_type_is_not_drift():
    class Thing(type(TYPES["A::Thing"])):
        def equal(self, name, before, after):
            return {before, after} == {1, 9}

    assert with_drift(Thing(), {"size": 1}, {"size": 1}, Observation(True, properties={"size": 9})) == {
        "size": 1
    }
    assert with_drift(Thing(), {"size": 1}, {"size": 1}, Observation(True, properties={"size": 8})) == {
        "size": 8
    }


def test_names_are_found_where_functions_mention_them():
    value = {"list_join": ["-", [{"get_resource": "a"}, {"get_attr": ["b", "x", 0]}, {"Ref": "c"}, "d", ID]]}
    assert mentioned([value, {"Fn::GetAtt": ["e", "x"]}], "abcde") == ["a", "b", "c", "e"]
    assert mentioned(value, "xyz") == []
