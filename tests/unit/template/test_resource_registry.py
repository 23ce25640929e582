"""The mapping of resource types (docs/internals/hot-language.md §9.4-§9.7)."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.errors import InvalidTemplate
from orchestrator.template.resource_registry import SCALED, ResourceRegistry, Target
from tests.profiles import examples

INSTALLED = {"OS::A", "OS::B", "OS::C"}.__contains__


def lead(user, type_name, name="r", operator=None, recorded=INSTALLED):
    """Return where a type leads: a name, None for a type that is removed."""
    result = ResourceRegistry.build(user, operator or {}, recorded).target(name, type_name)
    return result and result.name


def faults(user, operator=None):
    with pytest.raises(InvalidTemplate) as caught:
        ResourceRegistry.build(user, operator or {})
    return [(fault.path, fault.message) for fault in caught.value.diagnostics]


@pytest.mark.parametrize(
    ("user", "type_name", "leads_to"),
    [
        ({}, "OS::A", "OS::A"),
        ({}, "No::Such", "No::Such"),
        ({"My::T": "OS::A"}, "My::T", "OS::A"),
        ({"My::T": "OS::A", "OS::A": "OS::B"}, "My::T", "OS::B"),
        ({"My::*": "OS::*"}, "My::A", "OS::A"),
        ({"My::*": "OS::*"}, "My::Z", "My::Z"),
        ({"OS::*": "OS::B"}, "OS::A", "OS::B"),
        ({"OS::*": "OS::B"}, "OS::B", "OS::B"),
        ({"*": "OS::B"}, "anything", "OS::B"),
        ({"My::T": "https://there/t.yaml"}, "My::T", "https://there/t.yaml"),
        ({"My::T": "t.template"}, "My::T", "t.template"),
        ({"My::*": "t.yaml"}, "My::T", "My::T"),
        ({}, "t.yaml", "t.yaml"),
        ({"t.yaml": "OS::A"}, "t.yaml", "t.yaml"),
        ({"*": "OS::A"}, "t.yaml", "t.yaml"),
        ({}, "t.json", "t.json"),
        ({"My::T": {"x": "OS::A"}}, "My::T", "My::T"),
        ({"My::T": ""}, "My::T", "My::T"),
    ],
)
def test_a_type_leads_where_its_entry_says(user, type_name, leads_to):
    assert lead(user, type_name) == leads_to


@pytest.mark.parametrize(
    ("user", "operator", "leads_to"),
    [
        ({"resources": {"r": {"OS::A": "own"}}, "OS::A": "exact", "OS::*": "wild"}, {"OS::A": "op"}, "own"),
        ({"resources": {"s": {"OS::A": "own"}}, "OS::*": "wild", "OS::A": "exact"}, {"OS::A": "op"}, "exact"),
        ({"resources": {"*": {"OS::A": "own"}}, "OS::*": "wild"}, {"OS::A": "op"}, "wild"),
        ({}, {"OS::A": "op", "OS::*": "wild"}, "op"),
        ({}, {"OS::*": "wild"}, "wild"),
        ({"O*": "short", "OS::*": "long"}, {}, "short"),
        ({"resources": {"r": {"OS::*": "own"}}}, {}, "OS::A"),
    ],
)
def test_registry_entries_are_ranked_resource_user_exact_wildcard_operator(user, operator, leads_to):
    assert lead(user, "OS::A", operator=operator, recorded=None) == leads_to


def test_an_entry_that_leads_to_no_installed_type_is_passed_over():
    assert lead({"OS::A": "No::Such"}, "OS::A") == "OS::A"
    assert lead({"My::T": "No::Such", "My::*": "OS::B"}, "My::T") == "OS::B"
    assert lead({"My::T": "No::Such"}, "My::T") == "My::T"
    assert lead({"My::T": "No::Such"}, "My::T", recorded=None) == "No::Such"


def test_a_null_removes_earlier_mappings_and_only_the_operators_null_removes_installed_types():
    assert lead({"My::T": "OS::A", "My::*": None}, "My::T") == "My::T"
    assert lead({"My::*": None, "My::T": "OS::A"}, "My::T") == "OS::A"
    assert lead({"My::T": None, "My::*": "OS::A"}, "My::T") == "OS::A"
    assert lead({"OS::A": None}, "OS::A") == "OS::A"
    assert lead({"My::T": None}, "My::T", operator={"My::T": "OS::A"}) == "OS::A"
    assert lead({}, "OS::A", operator={"OS::A": None}) is None
    assert lead({}, "OS::A", operator={"OS::*": None}) is None
    assert lead({"OS::A": "OS::B"}, "OS::A", operator={"OS::A": None}) == "OS::B"
    assert lead({"My::T": "OS::A"}, "My::T", operator={"OS::A": None}) == "My::T"


def test_the_operator_can_map_a_type_away():
    assert lead({}, "OS::A", operator={"OS::A": "No::Such"}) is None
    assert lead({"OS::A": "No::Such"}, "OS::A", operator={"OS::A": "OS::B"}) == "OS::B"


def test_users_cannot_remap_the_targets_of_the_operators_entries():
    assert lead({"OS::B": "OS::C"}, "My::T", operator={"My::T": "OS::B"}) == "OS::B"
    assert lead({"My::T": "OS::A"}, "OS::A", operator={"OS::A": "My::T"}) is None


def test_the_user_may_map_the_type_of_group_members():
    operator = {SCALED: "OS::B"}
    assert lead({}, SCALED, operator=operator) == "OS::B"
    assert lead({"OS::B": "t.yaml"}, SCALED, operator=operator) == "t.yaml"
    assert lead({"OS::B": "OS::C", "OS::C": "OS::A"}, SCALED, operator=operator) == "OS::A"
    assert lead({SCALED: "OS::A", "OS::B": "t.yaml"}, SCALED, operator=operator) == "OS::A"


@pytest.mark.parametrize(
    "user",
    [
        {"A": "A"},
        {"A": "B", "B": "A"},
        {"A*": "A*"},
        {"A*": "AA*"},
        {"A*": "B*", "B*": "A*"},
        {"resources": {"r": {"A": "B", "B": "A"}}},
    ],
)
def test_cyclic_mappings_are_reported(user):
    with pytest.raises(InvalidTemplate, match=r"The resource_registry has a cyclic mapping: .* -> "):
        lead(user, "A")


def test_wildcards_that_lead_to_ever_more_types_are_short_work():
    user = {}
    for level in range(30):
        here, existing = chr(0x4E00 + level), chr(0x4E01 + level)
        user |= {f"{here}:*": f"{existing}:a*", f"{here}*": f"{existing}:b*"}
    began = time.process_time()
    with pytest.raises(InvalidTemplate, match="too many mappings that lead to no type"):
        lead(user, "\u4e00:")
    assert time.process_time() - began < 2


def test_names_that_wildcards_lengthen_stay_short():
    with pytest.raises(InvalidTemplate, match="has a cyclic mapping") as caught:
        lead({"A*": f"A{'b' * 50_000}*"}, "A")
    assert len(str(caught.value)) < 2000


def test_a_long_way_around_many_dead_ends_is_short_work():
    user = {f"A{n:02}*": f"A{n + 1:02}x" for n in range(60)} | {
        f"A{n:02}x": f"A{n + 1:02}x" for n in range(60)
    }
    began = time.process_time()
    assert lead(user, "A00x") == "A00x"
    assert time.process_time() - began < 2


def test_a_target_names_its_source_entry_and_permitted_urls():
    user = {
        "My::T": "u.yaml",
        "X": "Op::T",
        "Y": "OS::A",
        "resources": {"r": {"OS::B": "r.yaml", "n.yaml": "n.yaml"}},
    }
    registry = ResourceRegistry.build(user, {"Op::T": "file:///op.yaml"}, INSTALLED)
    mine = registry.target("s", "My::T")
    assert mine == Target("template", "u.yaml", True, ("My::T",))
    assert mine.schemes == ("http", "https")
    theirs = registry.target("s", "X")
    assert theirs == Target("template", "file:///op.yaml", False, ("Op::T",))
    assert theirs.schemes == ("http", "https", "file")
    assert registry.target("r", "OS::B") == Target("template", "r.yaml", True, ("resources", "r", "OS::B"))
    assert registry.target("s", "OS::B") == Target("type", "OS::B", False, ())
    assert registry.target("s", "Y") == Target("type", "OS::A", True, ("Y",))
    assert registry.target("s", "n.yaml") == Target("template", "n.yaml", True, ("n.yaml",))
    assert registry.target("r", "n.yaml").path == ("resources", "r", "n.yaml")


def test_hooks_and_restricted_actions_hold_for_names_and_patterns_case_sensitively():
    registry = ResourceRegistry.build(
        {
            "hooks": "pre-create",
            "resources": {
                "web": {"hooks": "pre-create", "restricted_actions": ["update", "replace"]},
                "*_server": {"hooks": ["pre-create", "pre-update"]},
                "[ab]_?erver": {"hooks": "post-delete", "restricted_actions": "replace"},
                "deep": {"web": {"hooks": "pre-delete"}},
                "none": {"hooks": []},
            },
        },
        {"resources": {"web": {"hooks": "post-create", "restricted_actions": "update"}}},
    )
    assert registry.hooks("web") == {"pre-create"}
    assert registry.hooks("Web") == registry.hooks("none") == registry.hooks("x") == frozenset()
    assert registry.hooks("a_server") == {"pre-create", "pre-update", "post-delete"}
    assert registry.restricted_actions("web") == {"update", "replace"}
    assert registry.restricted_actions("a_server") == {"replace"}
    assert registry.restricted_actions("c_server") == frozenset()


def test_all_faults_are_reported_at_once_with_heats_messages():
    hooks = "('pre-create', 'pre-update', 'pre-delete', 'post-create', 'post-update', 'post-delete')"
    user = {
        "resources": {
            "a": {"hooks": "nope"},
            "b": {"hooks": ["pre-create", "nope"], "restricted_actions": "x"},
            "c": "OS::A",
        },
        "T": 5,
    }
    assert faults(user, {"hooks": {}}) == [
        (
            "resource_registry.resources.a.hooks",
            f'Invalid hook type "nope" for resource breakpoint, acceptable hook types are: {hooks}',
        ),
        (
            "resource_registry.resources.b.hooks",
            "Invalid hook type \"['pre-create', 'nope']\" for resource breakpoint, "
            f"acceptable hook types are: {hooks}",
        ),
        (
            "resource_registry.resources.b.restricted_actions",
            'Invalid restricted_action type "x" for resource, '
            "acceptable restricted_action types are: ('update', 'replace')",
        ),
        (
            "resource_registry.T",
            'The resource_registry entry "T" must be the name of a type or of a template, '
            "a map or null; got int",
        ),
        (
            "resource_registry.resources.c",
            'The resource_registry entry for the resource "c" '
            "must be a map of types, hooks and restricted_actions",
        ),
        (
            "resource_registry.hooks",
            f'Invalid hook type "{{}}" for resource breakpoint, acceptable hook types are: {hooks}',
        ),
    ]
    [(path, _)] = faults({"resources": "x"})
    assert path == "resource_registry.resources"


def test_a_nested_stack_has_the_mapping_that_made_it_taken_away_and_only_its_own_resources():
    user = {
        "OS::A": "a.yaml",
        "OS::B": "a.yaml",
        "resources": {
            "db": {"x": {"OS::C": "exact.yaml"}, "OS::A": "own.yaml", "hooks": "pre-create"},
            "d*": {"x": {"OS::C": "wild.yaml"}, "y": {"hooks": "pre-delete"}},
            "web": {"z": {"hooks": "pre-create"}},
        },
    }
    registry = ResourceRegistry.build(user)
    target = registry.target("web", "OS::A")
    child = registry.child("web", target)
    assert child.to_json() == {"OS::B": "a.yaml", "resources": {"z": {"hooks": "pre-create"}}}
    assert child.target("x", "OS::A") == Target("type", "OS::A", False, ())
    child = registry.child("db", registry.target("db", "OS::A"))
    assert child.to_json()["OS::A"] == "a.yaml"
    assert child.target("x", "OS::C").name == "exact.yaml"
    assert child.hooks("y") == {"pre-delete"}
    assert child.hooks("db") == frozenset()
    assert registry.to_json() == user


def test_a_nested_stack_keeps_the_operators_entries():
    registry = ResourceRegistry.build({}, {"My::T": "op.yaml", "OS::Old": "OS::A"}, INSTALLED)
    child = registry.child("r", registry.target("r", "My::T"))
    assert child.target("x", "OS::Old").name == "OS::A"


def test_a_type_without_entries_for_the_resource_is_looked_up_once():
    registry = ResourceRegistry.build({"resources": {"one": {"OS::A": "OS::B"}}}, {"Old*": "OS*"}, INSTALLED)
    first = registry.target("a", "Old::A")
    assert first.name == "OS::A"
    assert all(registry.target(f"r{n}", "Old::A") is first for n in range(1000))
    assert registry.target("one", "OS::A").name == "OS::B"


names = st.sampled_from(["A", "B", "A::B", "OS::A", "OS::B", "OS::*", "A*", "*", "x.yaml", "a", "hooks", ""])
entries = st.recursive(
    names | st.none() | st.integers() | st.lists(names),
    lambda inner: st.dictionaries(names, inner, max_size=4),
)


@settings(max_examples=examples(200), deadline=None)
@given(user=st.dictionaries(names | st.just("resources"), entries, max_size=5), type_name=names, name=names)
def test_any_registry_is_read_or_refused(user, type_name, name):
    try:
        registry = ResourceRegistry.build(user, {}, INSTALLED)
        target = registry.target(name, type_name)
        registry.hooks(name)
        child = registry.child(name, target)
    except InvalidTemplate:
        return
    assert ResourceRegistry.build(registry.to_json(), {}, INSTALLED).to_json() == registry.to_json()
    assert ResourceRegistry.build(child.to_json(), {}, INSTALLED).to_json() == child.to_json()
