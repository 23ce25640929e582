"""The text that the child of a group is made from: short, and the same as the template that it stands for."""

from __future__ import annotations

import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.engine.validation.property_resolution import resolve_properties
from orchestrator.engine.validation.type_resolution import TypeEnvironment, TypeResolver
from orchestrator.errors import InvalidTemplate
from orchestrator.resources.builtin.test_resource import TestResource
from orchestrator.resources.builtin.value import ValueResource
from orchestrator.resources.registry import Registry
from orchestrator.template.definition import StackDefinition
from orchestrator.template.environment import Environment
from orchestrator.template.formats import all_formats
from orchestrator.template.functions.member import with_secrets
from orchestrator.template.group_template import (
    MAX_SHOWN,
    PARAMETER,
    Definition,
    MemberDefinitions,
    Members,
    Part,
    as_hot,
    is_members,
    load_stored,
)
from orchestrator.template.index_ranges import Ordinals
from orchestrator.template.parameters import MASK, ParameterValues
from orchestrator.template.parse import Limits
from orchestrator.template.secret_values import SecretValues
from orchestrator.template.template import Template, load

TYPE = "OS::Heat::Value"
NEW = Definition(TYPE, {"properties": {"value": "new %index%"}, "metadata": {"a": "%index%"}}, "%index%")
OLD = Definition(TYPE, {"properties": {"value": "old"}})


def group(**options):
    parts = (Part.of(OLD, Ordinals.of([0, 2])), Part.of(NEW, Ordinals.of([1, 7])))
    return Members(parts, **options)


def values(*definitions):
    return ParameterValues({PARAMETER: {definition.digest: definition.value() for definition in definitions}})


def resolved(members, name, supplied):
    template = members.template()
    view = StackDefinition(template.version, supplied, {})
    return resolve_properties(template.resources[name].body, view, ValueResource(), name)[0]


@given(
    st.lists(st.sets(st.integers(0, 50)), max_size=3),
    st.sampled_from(["", "0f"]),
    st.integers(0, 60),
    st.integers(0, 3),
)
def test_written_values_are_read_again(sets, seed, beyond, window):
    taken = Ordinals()
    parts = []
    for index, numbers in enumerate(sets):
        mine = Ordinals.of(numbers) - taken
        taken |= mine
        parts.append(Part(str(index), f"T{index}", ("properties",), mine))
    members = Members(tuple(parts), seed, beyond if seed else 0, window)
    text = members.text()
    assert Members.parse(text) == members
    assert is_members(text)
    assert is_members(text.encode())
    resources = members.template().resources
    assert len(resources) == len(taken)
    assert list(resources) == members.names(taken)
    assert dict(resources.items()) == {name: resources[name] for name in resources}


@given(st.sets(st.integers(0, 2**40), max_size=20), st.text("0123456789abcdef", min_size=1, max_size=8))
def test_names_are_twelve_characters_that_tell_whose_they_are(numbers, seed):
    members = Members(seed=seed)
    names = [members.name(number) for number in sorted(numbers)]
    assert all(len(name) == 12 and name.isalnum() and name == name.lower() for name in names)
    assert [members.number(name) for name in names] == sorted(numbers)


def test_another_group_has_other_names():
    assert {Members(seed="a").name(n) for n in range(50)}.isdisjoint(
        Members(seed="b").name(n) for n in range(50)
    )


@pytest.mark.parametrize("name", ["", "a", "0", "00", "-1", "x" * 12, "A" * 12, "1" * 12, " 1", "é" * 12])
@pytest.mark.parametrize("seed", ["", "s"])
def test_a_name_without_a_member_is_not_a_member(name, seed):
    resources = Members((Part("d", "T", (), Ordinals.of([5])),), seed=seed).template().resources
    assert name not in resources
    with pytest.raises(KeyError):
        resources[name]


def test_each_member_has_its_own_definition_and_its_name_in_it():
    supplied = values(NEW, OLD)
    assert resolved(group(), "0", supplied) == {"value": "old"}
    assert resolved(group(), "7", supplied) == {"value": "new 7"}


def test_function_like_maps_in_a_definition_are_data():
    tricky = Definition(TYPE, {"properties": {"value": {"get_param": "OS::stack_id"}}})
    members = Members((Part.of(tricky, Ordinals.of([0])),))
    assert resolved(members, "0", values(tricky)) == {"value": {"get_param": "OS::stack_id"}}
    nested = Definition(TYPE, {"properties": {"member": [PARAMETER, NEW.digest, "0", "properties"]}})
    members = Members((Part.of(nested, Ordinals.of([0])),))
    with pytest.raises(InvalidTemplate, match="Unknown Property member"):
        resolved(members, "0", values(nested, NEW))


def test_a_definition_that_is_gone_is_an_error_of_its_member_alone():
    with pytest.raises(InvalidTemplate, match="The definition of the member 0 does not exist any more"):
        resolved(group(), "0", values(NEW))


def test_properties_of_a_hidden_parameter_are_secret():
    template = group().template()
    held = ParameterValues({PARAMETER: {OLD.digest: OLD.value()}}, hidden=frozenset({PARAMETER}))
    view = StackDefinition(template.version, held, {})
    resolve_properties(template.resources["0"].body, view, ValueResource(), "0")
    assert view.used_secret


def test_a_member_differs_only_if_its_definition_differs():
    supplied = ParameterValues({})

    def digests(members):
        return {name: item.digest(supplied) for name, item in members.template().resources.items()}

    before = digests(group())
    assert len(set(before.values())) == 4
    grown = Members((*group().parts, Part.of(NEW, Ordinals.of([9]))))
    assert {**digests(grown), **before} == digests(grown)
    newer = Members((Part.of(NEW, group().all),))
    assert [name for name, digest in digests(newer).items() if digest == before[name]] == ["1", "7"]
    assert digests(Members(group().parts, window=1))["2"] != before["2"]


def test_each_member_of_a_chain_waits_for_its_predecessor():
    members = Members((Part("d", "T", (), Ordinals.span(0, 4)),), window=2)
    resources = members.template().resources
    assert [sorted(item.requires) for item in resources.values()] == [[], [], ["0"], ["1"]]


def test_a_million_members_take_no_room():
    tracemalloc.start()
    text = Members((Part.of(NEW, Ordinals.span(0, 1_000_000)),), seed="s").text()
    template = load_stored(text, Limits())
    assert len(template.resources) == 1_000_000
    name = Members.parse(text).name(999_999)
    assert template.resources[name].type == TYPE
    types = Registry.of(ValueResource, TestResource)
    kinds = TypeResolver(TypeEnvironment.of_stack(types, Environment(), {}, Limits()))
    assert [kinds.resolved_name(sample) for sample in kinds.samples(template)] == [TYPE]
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(text) < 400
    assert most < 1_000_000


def test_showing_a_million_members_builds_none_of_them(monkeypatch):
    made = []
    make = MemberDefinitions._made
    monkeypatch.setattr(MemberDefinitions, "_made", lambda *args: made.append(args[1]) or make(*args))
    outline = Members((Part.of(NEW, Ordinals.span(0, 1_000_000)),)).template().outline()
    assert (outline["templates"], made) == ([], ["0"])
    named = Definition("http://example.com/member.yaml")
    assert Members((Part.of(named, Ordinals.span(0, 2)),)).template().outline()["templates"] == [named.type]


def test_stored_display_values_can_be_read_again():
    template = group().template()
    again = Template.from_outline(json.loads(json.dumps(template.outline())))
    assert again.version == template.version
    assert again.parameters == template.parameters
    assert again.resources == {}


@pytest.mark.parametrize("key", ["", *sorted({form.key for form in all_formats().values()})])
def test_such_a_text_is_refused(key):
    document = json.loads(group().text())
    with pytest.raises(InvalidTemplate):
        load(group().text(), Limits())
    with pytest.raises(InvalidTemplate):
        load(document, Limits())
    versions = [form.version for form in all_formats().values() if form.key == key]
    for version in versions:
        with pytest.raises(InvalidTemplate):
            load({"orchestrator_members": "1", key: version}, Limits())
    assert "orchestrator_members" not in {form.key for form in all_formats().values()}


@pytest.mark.parametrize("text", ["", "{}", '{"heat_template_version": "2018-08-31"}', b"{"])
def test_other_texts_are_none(text):
    assert not is_members(text)
    with pytest.raises(ValueError, match="not the text of a group"):
        Members.parse(text)


def test_it_is_shown_as_the_template_that_it_stands_for():
    supplied = values(NEW, OLD)
    shown = as_hot(Members(group().parts, window=1).text(), supplied)
    assert shown == {
        "heat_template_version": "2015-04-30",
        "resources": {
            "0": {"type": TYPE, "properties": {"value": "old"}},
            "1": {
                "type": TYPE,
                "properties": {"value": "new 1"},
                "metadata": {"a": "%index%"},
                "depends_on": ["0"],
            },
            "2": {"type": TYPE, "properties": {"value": "old"}, "depends_on": ["1"]},
            "7": {"type": TYPE, "properties": {"value": "new 7"}, "metadata": {"a": "%index%"}},
        },
    }
    assert len(load(shown, Limits()).resources) == 4


def test_secrets_are_masked_in_output():
    shown = as_hot(group().text(), {PARAMETER: None})
    assert shown["resources"]["0"] == {"type": TYPE, "properties": MASK}


def test_known_secrets_are_masked_by_value_in_output():
    mixed = Definition(TYPE, {"properties": {"value": {"pw": "hush-%index%", "open": "o"}}}, "%index%")
    members = Members((Part.of(mixed, Ordinals.of([0])),))
    held = {PARAMETER: {mixed.digest: mixed.value()}}
    known = with_secrets(held, SecretValues({"hush-%index%"}))
    shown = as_hot(members.text(), known, secret=True)
    assert shown["resources"]["0"]["properties"] == {"value": {"pw": MASK, "open": "o"}}
    assert as_hot(members.text(), held, secret=True)["resources"]["0"]["properties"] == MASK


def test_of_very_many_the_first_are_shown():
    shown = as_hot(Members((Part.of(OLD, Ordinals.span(0, 100_000)),)).text(), values(OLD))
    assert len(shown["resources"]) == MAX_SHOWN
    assert shown["description"] == "The first 1000 of 100000 members"
