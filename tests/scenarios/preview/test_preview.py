"""The preview of an update: the changed resources, the reasons, and the certainty."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from sqlalchemy import text

from orchestrator.engine.preview.results import ForecastResource
from orchestrator.errors import InvalidTemplate, LimitExceeded, NotFound, ProviderBusy
from orchestrator.operations.context import Body
from orchestrator.operations.preview import stack as stack_preview
from orchestrator.operations.preview.update import UpdatePreview, preview_update
from orchestrator.resources.base import Context, Observation, Property
from tests.scenarios.fake_cloud import Cloud, Server, cloud_thing
from tests.scenarios.stacks.five_resources import five
from tests.scenarios.world import World, test_resource

TURNS = ("unchanged", "updated", "replaced", "added", "deleted")
Resources = dict[str, Any]


class Drifting(Server):
    """A thing whose observed state can differ, and whose place is immutable."""

    name = "Cloud::Drifting"
    properties = {**Server.properties, "place": Property("string", default="here", immutable=True)}  # noqa: RUF012

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        observed = super().observe(ctx, physical_id)
        if not observed.exists:
            return observed
        return Observation(
            exists=True,
            ready=observed.ready,
            attributes=observed.attributes,
            properties={"value": self.cloud.values[physical_id], "looks": 0},
        )


@pytest.fixture
def clouded(postgres_url: str, cloud: Cloud) -> Iterator[World]:
    """A world with its own cloud."""
    made = World(postgres_url, types={**cloud.types(), Drifting.name: Drifting(cloud)})
    yield made
    made.close()


def foreseen(world: World, resources: Resources, **request: Any) -> UpdatePreview:
    whole = {"heat_template_version": "2021-04-16", "resources": resources}
    whole |= {key: request.pop(key) for key in ("parameters", "outputs") if key in request}
    body = orjson.dumps({"template": whole, **request})
    return preview_update(world.context, world.stack_row("s"), Body(body))


def names(preview: UpdatePreview) -> dict[str, set[str]]:
    """Return the names by forecast action, without unchanged resources."""
    forecast = {turn: {item.expected.name for item in preview.items[turn]} for turn in TURNS}
    forecast["unchanged"] |= set(preview.unchanged)
    return {turn: held for turn, held in forecast.items() if held}


def expected(preview: UpdatePreview, name: str) -> ForecastResource:
    [result] = [
        item.expected for held in preview.items.values() for item in held if item.expected.name == name
    ]
    return result


def rested(world: World, resources: Resources, **request: Any) -> None:
    world.create("s", resources, **request)
    world.deliver_all()


def test_the_same_template_changes_nothing(world):
    rested(world, five())
    assert names(foreseen(world, five())) == {"unchanged": set("ABCDE")}


def test_a_preview_leaves_no_trace(world):
    rested(world, five())
    tables = "stack", "revision", "content", "resource", "resource_definition", "graph_node", "event"
    before = {table: world.rows(f"SELECT t::text FROM {table} t ORDER BY 1") for table in tables}
    foreseen(world, five(C=test_resource("new"), F=test_resource("f"), A=None))
    assert {table: world.rows(f"SELECT t::text FROM {table} t ORDER BY 1") for table in tables} == before
    assert world.messages == []


def test_the_five_lists_and_why(world):
    fixed = {"update_replace_value": "1"}
    rested(world, five(A=test_resource("a", **fixed), F=test_resource("f")))
    desired = five(
        A=test_resource("a", update_replace_value="2"), B=test_resource("b2"), G=test_resource("g")
    )
    preview = foreseen(world, desired)
    assert names(preview) == {
        "unchanged": {"C", "D", "E"},
        "updated": {"B"},
        "replaced": {"A"},
        "added": {"G"},
        "deleted": {"F"},
    }
    assert expected(preview, "A").because == "update_replace_value cannot be changed in place"
    assert expected(preview, "A").changed == {"update_replace_value": ("1", "2")}
    assert expected(preview, "B").because == "value changes"
    assert expected(preview, "B").changed == {"value": ("b", "b2")}
    assert all(item.expected.certain for held in preview.items.values() for item in held)


def test_a_value_ripples_as_far_as_it_changes_something(world):
    rested(world, five())
    preview = foreseen(world, five(C=test_resource("new", requires=("A", "B"))))
    assert names(preview) == {"updated": {"C", "E"}, "unchanged": {"A", "B", "D"}}
    assert expected(preview, "E").changed == {"value": ("4alpha", "new")}
    assert expected(preview, "E").because == "value changes (C is changed)"
    assert expected(preview, "E").certain
    preview = foreseen(world, five(C=test_resource("4alpha", requires=("A", "B"), client_name="x")))
    assert names(preview) == {"updated": {"C"}, "unchanged": {"A", "B", "D", "E"}}


def test_a_new_id_is_not_known_and_sure_to_be_another(world):
    fixed = {"requires": ("A", "B"), "update_replace_value": "1"}
    rested(world, five(C=test_resource("4alpha", **fixed)))
    preview = foreseen(world, five(C=test_resource("4alpha", **{**fixed, "update_replace_value": "2"})))
    d, e = expected(preview, "D"), expected(preview, "E")
    [old] = [row.physical_id for row in world.rows("SELECT physical_id FROM resource WHERE name = 'C'")]
    assert (d.turn, d.certain, d.changed, d.unknown) == ("updated", True, {"value": (old, None)}, ("value",))
    assert d.because == "value changes (C is replaced)"
    # C's value may be unchanged.
    assert (e.turn, e.certain, e.because) == ("updated", False, "value may change (C is replaced)")


def test_a_changed_type_and_a_failed_resource_are_replaced(world):
    rested(world, {"a": test_resource(), "b": test_resource()})
    with world.database.engine.begin() as connection:
        unhealthy = "action = 'CHECK', status = 'FAILED', status_reason = 'no pulse'"
        query = f"UPDATE resource SET {unhealthy} WHERE name = 'b'"
        connection.exec_driver_sql(query)
    preview = foreseen(world, {"a": {"type": "OS::Heat::RandomString"}, "b": test_resource()})
    assert names(preview) == {"replaced": {"a", "b"}}
    because = "its type changes from OS::Heat::TestResource to OS::Heat::RandomString"
    assert expected(preview, "a").because == because
    assert expected(preview, "b").because == "it is unhealthy: no pulse"


def test_a_change_of_metadata_alone_is_made_in_place(world):
    rested(world, {"a": test_resource()})
    preview = foreseen(world, {"a": {**test_resource(), "metadata": {"k": 1}}})
    assert names(preview) == {"updated": {"a"}}
    assert expected(preview, "a").because == "its metadata changes"


def test_a_retained_resource_reports_this_on_delete(clouded):
    kept = {**cloud_thing(), "deletion_policy": "retain"}
    rested(clouded, {"a": kept, "b": cloud_thing(), "c": cloud_thing()})
    preview = foreseen(clouded, {"c": cloud_thing()})
    assert names(preview) == {"deleted": {"a", "b"}, "unchanged": {"c"}}
    assert expected(preview, "a").because == "its deletion policy keeps the physical resource"
    assert expected(preview, "b").because == ""


def test_secrets_are_masked_and_nothing_shows_them(world):
    parameters = {"p": {"type": "string", "hidden": True}, "q": {"type": "string", "default": "open"}}

    def wanted(q: str) -> Resources:
        return {
            "a": test_resource({"get_param": "p"}),
            "b": test_resource({"get_attr": ["a", "output"]}),
            "c": test_resource({"get_attr": ["r", "value"]}),
            "d": test_resource(q),
            "r": {"type": "OS::Heat::RandomString", "properties": {"salt": q}},
        }

    rested(world, wanted("x"), parameters=parameters, environment={"parameters": {"p": "sesame-1"}})
    [row] = world.rows("SELECT sealed FROM resource WHERE name = 'r'")
    drawn = world.cipher.open(row.sealed)["attributes"]["value"]
    preview = foreseen(
        world, wanted("y"), parameters=parameters, environment={"parameters": {"p": "sesame-2"}}
    )
    assert names(preview) == {"updated": set("abcd"), "replaced": {"r"}}
    assert expected(preview, "a").changed == expected(preview, "b").changed == {"value": ("******", "******")}
    assert expected(preview, "c").changed == {"value": ("******", None)}
    assert expected(preview, "d").changed == {"value": ("x", "y")}
    assert expected(preview, "r").changed == {"salt": ("x", "y")}  # only its attribute is secret
    for secret in ("sesame-1", "sesame-2", drawn):
        assert secret not in repr(preview)


def secret_and_open(value: Any, name: str) -> Resources:
    """Return a resource with an open property besides its value."""
    return {"a": test_resource(value, client_name=name)}


@pytest.fixture
def hidden() -> dict[str, Any]:
    """A hidden parameter and its value."""
    parameters = {"p": {"type": "string", "hidden": True}}
    return {"parameters": parameters, "environment": {"parameters": {"p": "sesame"}}}


def test_recorded_values_are_masked_by_property(world, hidden):
    secret = {"get_param": "p"}
    rested(world, secret_and_open(secret, "one"), **hidden)
    preview = foreseen(world, secret_and_open("open", "two"), **hidden)
    assert expected(preview, "a").changed == {"client_name": ("one", "two"), "value": ("******", "open")}
    world.update("s", secret_and_open({"list_join": ["-", ["x", secret]]}, "two"), **hidden)
    world.deliver_all()
    preview = foreseen(world, secret_and_open("open", "three"), **hidden)
    assert expected(preview, "a").changed == {"client_name": ("two", "three"), "value": ("******", "open")}
    assert "sesame" not in repr(preview)


def test_a_property_that_becomes_secret_is_masked_on_both_sides(world, hidden):
    """Its open value may be the secret: an equal value is not written again when its parameter is hidden."""
    rested(world, secret_and_open("sesame", "one"), **hidden)
    world.update("s", secret_and_open({"get_param": "p"}, "one"), **hidden)
    world.deliver_all()
    changed = {**hidden, "environment": {"parameters": {"p": "other"}}}
    preview = foreseen(world, secret_and_open({"get_param": "p"}, "two"), **changed)
    assert expected(preview, "a").changed == {"client_name": ("one", "two"), "value": ("******", "******")}


def test_a_row_without_recorded_secrets_stays_masked(world, hidden):
    """A row last written by an earlier version."""
    rested(world, secret_and_open({"get_param": "p"}, "one"), **hidden)
    [row] = world.rows("SELECT sealed FROM resource WHERE name = 'a'")
    opened = world.cipher.open(row.sealed)
    assert "sesame" in str(opened.pop("secret_values"))
    with world.database.engine.begin() as connection:
        connection.execute(text("UPDATE resource SET sealed = :s"), {"s": world.cipher.seal(opened)})
    preview = foreseen(world, secret_and_open("open", "two"), **hidden)
    assert expected(preview, "a").changed == {"client_name": ("******", "two"), "value": ("******", "open")}
    world.update("s", secret_and_open({"get_param": "p"}, "two"), **hidden)  # writes the row again
    world.deliver_all()
    preview = foreseen(world, secret_and_open("open", "three"), **hidden)
    assert expected(preview, "a").changed["client_name"] == ("two", "three")


def test_immutable_changes_are_refused_with_each_place(clouded):
    thing = "Cloud::Drifting"
    rested(clouded, {name: cloud_thing(type=thing) for name in "ab"})
    with pytest.raises(InvalidTemplate) as refused:
        foreseen(clouded, {name: cloud_thing(type=thing, place="there") for name in "ab"})
    assert str(refused.value) == "Update to properties place of a (Cloud::Drifting) is not supported."
    assert refused.value.heat_type == "NotSupported"
    assert [diagnostic.path for diagnostic in refused.value.diagnostics] == [
        "resources.a.properties",
        "resources.b.properties",
    ]


def test_a_value_that_the_update_would_fail_for_is_refused(world):
    rested(world, {"a": test_resource("12"), "b": test_resource()})
    requests = {"type": "OS::Heat::RandomString", "properties": {"length": {"get_attr": ["a", "output"]}}}
    assert names(foreseen(world, {"a": test_resource("12"), "b": test_resource(), "c": requests}))[
        "added"
    ] == {"c"}
    with pytest.raises(
        InvalidTemplate, match=r"resources\.c\.properties\.length: Value 'many' is not an integer"
    ):
        foreseen(world, {"a": test_resource("many"), "b": test_resource(), "c": requests})


def test_objects_of_other_projects_are_not_touched(clouded, cloud):
    cloud.things["theirs"] = cloud.values["theirs"] = "x"
    theirs = {**cloud_thing(), "external_id": "theirs"}
    rested(clouded, {"a": theirs})
    assert names(foreseen(clouded, {"a": {**theirs, "properties": {"value": "y"}}})) == {"unchanged": {"a"}}
    with pytest.raises(InvalidTemplate, match="Update to property external_id of a"):
        foreseen(clouded, {"a": {**theirs, "external_id": "others"}})


def test_a_preview_during_a_create_compares_with_the_existing_resources(clouded):
    clouded.create("s", {"a": cloud_thing(looks=9), "b": cloud_thing(requires=("a",)), "c": cloud_thing()})
    clouded.deliver(3)  # the plan and the first two
    preview = foreseen(
        clouded, {"a": cloud_thing(looks=9), "b": cloud_thing(requires=("a",)), "c": cloud_thing()}
    )
    assert names(preview) == {"unchanged": {"a", "c"}, "added": {"b"}}
    preview = foreseen(clouded, {"a": cloud_thing(value="x", looks=9)})
    assert names(preview) == {"replaced": {"a"}, "deleted": {"c"}}


def test_a_rollback_restores_the_previous_resource(clouded, cloud):
    def wanted(value: str) -> Resources:
        requests = {"get_resource": "a"}
        return {"a": cloud_thing(value=value), "b": cloud_thing(type="Cloud::Server", value=requests)}

    rested(clouded, wanted("1"))

    def refuse(ctx: Context) -> None:
        raise RuntimeError("no")

    cloud.on["update"] = refuse
    clouded.update("s", wanted("2"))
    clouded.deliver_all()
    cloud.on.clear()
    first, second = [
        row.physical_id
        for row in clouded.rows("SELECT physical_id FROM resource WHERE name = 'a' ORDER BY id")
    ]
    preview = foreseen(clouded, wanted("1"))
    assert expected(preview, "a").turn == "replaced"
    assert expected(preview, "a").because == "the previous resource is restored"
    assert expected(preview, "b").turn == "replaced"  # it has failed
    preview = foreseen(clouded, wanted("2"))
    assert [(item.expected.turn, item.expected.because) for item in preview.items["deleted"]] == [
        ("deleted", "it is left over from before")
    ]
    clouded.update("s", wanted("1"))
    clouded.deliver_all()
    assert first in cloud.things
    assert second not in cloud.things


def test_a_resource_being_deleted_is_recreated(clouded, cloud):
    rested(clouded, {"a": cloud_thing(), "b": cloud_thing(requires=("a",))})

    def refuse(ctx: Context) -> None:
        raise ProviderBusy("not now")

    cloud.on["delete"] = refuse
    clouded.delete("s")
    clouded.deliver(3)  # the plan, the finish, and the first of the two
    preview = foreseen(clouded, {"a": cloud_thing(), "b": cloud_thing(requires=("a",))})
    assert names(preview)["added"] == {"b"}
    assert [item.expected.because for item in preview.items["deleted"]] == ["it is being removed already"]


def test_a_suspended_stack_can_be_compared_and_a_deleted_stack_cannot(world):
    rested(world, five())
    with world.database.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE stack SET action = 'SUSPEND'")
    assert names(foreseen(world, five(E=None)))["deleted"] == {"E"}
    uuid = world.stack_row("s").uuid
    world.delete("s")
    world.deliver_all()
    row = world.stack_row(str(uuid))
    with pytest.raises(NotFound):
        preview_update(world.context, row, Body(orjson.dumps({"template": {}})))


def test_a_patch_keeps_omitted_fields(world):
    parameters = {"p": {"type": "string", "default": "1"}, "q": {"type": "string", "default": "2"}}
    desired = {"a": test_resource({"get_param": "p"}), "b": test_resource({"get_param": "q"})}
    rested(world, desired, parameters=parameters, environment={"parameters": {"p": "one"}})
    body = Body(orjson.dumps({"parameters": {"q": "two"}}))
    preview = preview_update(world.context, world.stack_row("s"), body, patch=True)
    assert names(preview) == {"unchanged": {"a"}, "updated": {"b"}}


def test_a_plan_from_the_observed_state_finds_drift_and_missing_resources(clouded, cloud):
    thing = "Cloud::Drifting"
    desired = {name: cloud_thing(type=thing, value="v") for name in "abc"}
    desired["d"] = cloud_thing(type=thing, value={"get_attr": ["a", "value"]})
    rested(clouded, desired)
    ids = {row.name: row.physical_id for row in clouded.rows("SELECT name, physical_id FROM resource")}
    cloud.values[ids["a"]] = "drifted"
    del cloud.things[ids["b"]]
    assert names(foreseen(clouded, desired)) == {"unchanged": set("abcd")}
    calls = len(cloud.calls)
    preview = foreseen(clouded, desired, converge=True)
    assert sorted(cloud.calls[calls:]) == [f"observe {name}" for name in "abcd"]
    assert expected(preview, "a").changed == {"value": ("drifted", "v")}
    assert expected(preview, "a").because == "value changes; value was changed outside the stack"
    assert expected(preview, "b").because == "it is gone"
    assert names(preview)["replaced"] == {"b"}
    assert "c" in names(preview)["unchanged"]


def test_an_unobservable_resource_is_not_absent(clouded, cloud):
    rested(clouded, {"a": cloud_thing()})

    def refuse(ctx: Context) -> None:
        raise ProviderBusy("nobody answers")

    cloud.on["observe"] = refuse
    preview = foreseen(clouded, {"a": cloud_thing()}, converge=True)
    assert names(preview) == {"unchanged": {"a"}}
    assert expected(preview, "a").because == "it could not be observed: nobody answers"
    assert not expected(preview, "a").certain


def test_too_many_resources_to_observe_in_an_answer_are_refused(clouded, cloud, monkeypatch):
    monkeypatch.setattr(stack_preview, "MAX_PREVIEW_OBSERVATIONS", 2)
    rested(clouded, {name: cloud_thing() for name in "abc"})
    with pytest.raises(LimitExceeded, match="would observe 3 resources, more than 2\\."):
        foreseen(clouded, {name: cloud_thing() for name in "abc"}, converge=True)
    assert foreseen(clouded, {name: cloud_thing() for name in "abc"}).unchanged == set("abc")
