"""The differences between two revisions: the smallest changed places, and no hidden values."""

from __future__ import annotations

from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.engine.history import revision_diff
from orchestrator.engine.history.revision_diff import MASK, Side, as_json, compare

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)


def differences(
    before: Any, after: Any, section: str = "resources", hidden: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Return the differences in a section."""
    result = as_json(compare(Side({section: before}, hidden), Side({section: after}, hidden)))
    shown: dict[str, Any] = result.get(section, {})
    return shown


def changes(before: Any, after: Any) -> list[tuple[str, Any, Any]]:
    """Return the report of an entry: path, before, after."""
    result = differences({"a": before}, {"a": after})
    if not result:
        return []
    [entry] = result["changed"]
    assert entry["more"] == 0
    return [
        (change["path"], change.get("before", "-"), change.get("after", "-")) for change in entry["changes"]
    ]


def test_equal_sections_are_not_reported():
    item = {"a": {"type": "T", "properties": {"x": [1, {"y": 2}]}}}
    assert compare(Side({"resources": item}), Side({"resources": orjson.loads(orjson.dumps(item))})) == {}


def test_added_and_removed_entries_are_reported_with_their_types():
    before, after = {"a": {"type": "T"}, "b": {"type": "T"}}, {"c": {"type": "U"}, "b": {"type": "T"}}
    assert differences(before, after) == {
        "added": [{"name": "c", "type": "U"}],
        "removed": [{"name": "a", "type": "T"}],
        "changed": [],
    }


def test_the_smallest_changed_places_of_a_definition_are_reported():
    before = {
        "type": "T",
        "properties": {"same": 1, "x": "old", "list": [1, 2], "map": {"k": [{"deep": 1}]}, "gone": True},
        "depends_on": ["p"],
    }
    after = {
        "type": "U",
        "properties": {"same": 1, "x": "new", "list": [1, 2, 3], "map": {"k": [{"deep": 2}]}, "fresh": None},
        "depends_on": ["q"],
    }
    assert changes(before, after) == [
        ("type", "T", "U"),
        ("properties.x", "old", "new"),
        ("properties.list", [1, 2], [1, 2, 3]),
        ("properties.map.k[0].deep", 1, 2),
        ("properties.fresh", "-", None),
        ("properties.gone", True, "-"),
        ("depends_on[0]", "p", "q"),
    ]


def test_another_function_is_another_value():
    before, after = {"p": {"get_param": "x"}}, {"p": {"get_attr": ["x", "y"]}}
    assert changes(before, after) == [("p", {"get_param": "x"}, {"get_attr": ["x", "y"]})]
    assert changes(before, {"p": {"get_param": "z"}}) == [("p.get_param", "x", "z")]


def test_values_that_only_python_considers_equal_differ():
    assert changes({"p": 1}, {"p": True}) == [("p", 1, True)]
    assert changes({"p": [0]}, {"p": [False]}) == [("p[0]", 0, False)]
    assert changes({"p": 1.0}, {"p": 1}) == [("p", 1.0, 1)]


def test_null_is_a_value_and_nothing_is_none():
    assert changes({"p": None}, {}) == [("p", None, "-")]
    assert changes({}, {"p": None}) == [("p", "-", None)]


def test_of_hidden_parameters_only_the_difference_is_reported():
    before = {"h": {"type": "json", "value": {"secret1": 1}, "default": {"secret2": 1}, "label": "l"}}
    after = {"h": {"type": "json", "value": {"secret3": 1}, "default": {"secret2": 4}, "label": "m"}}
    result = differences(before, after, "parameters", ("h",))
    assert result["changed"] == [
        {
            "name": "h",
            "changes": [
                {"path": "value", "before": MASK, "after": MASK},
                {"path": "default", "before": MASK, "after": MASK},
                {"path": "label", "before": "l", "after": "m"},
            ],
            "more": 0,
        }
    ]
    assert b"secret" not in orjson.dumps(result)


def test_parameter_defaults_of_hidden_parameters_are_hidden_too():
    faults = differences({"h": {"secret1": 1}}, {"h": {"secret2": 1}}, "parameter_defaults", ("h",))
    assert faults["changed"][0]["changes"] == [{"path": "", "before": MASK, "after": MASK}]
    added = differences({}, {"h": {"type": "secret"}}, "parameter_defaults", ("h",))
    assert added["added"] == [{"name": "h"}]


def test_values_hidden_in_either_revision_are_hidden():
    sections = [{"parameters": {"p": {"value": text}}} for text in ("secret1", "secret2")]
    for hidden in (((), ("p",)), (("p",), ())):
        result = compare(Side(sections[0], hidden[0]), Side(sections[1], hidden[1]))
        assert b"secret" not in orjson.dumps(as_json(result))


def test_long_values_are_cut_and_many_changes_counted(monkeypatch):
    [(path, before, after)] = changes({"p": "x" * 2_000}, {"p": ["y" * 2_000]})
    assert (path, before) == ("p", "x" * 1_000 + "…")
    assert after == '["' + "y" * 998 + "…"
    many = differences({"a": {f"p{n}": 1 for n in range(150)}}, {"a": {f"p{n}": 2 for n in range(150)}})
    assert (len(many["changed"][0]["changes"]), many["changed"][0]["more"]) == (100, 50)
    monkeypatch.setattr(revision_diff, "MAX_CHANGES", 3)
    few = differences({n: {"p": 1, "q": 1} for n in "abc"}, {n: {"p": 2, "q": 2} for n in "abc"})
    assert [(len(item["changes"]), item["more"]) for item in few["changed"]] == [(2, 0), (1, 1), (0, 2)]


@given(JSON, JSON)
def test_the_reported_places_are_exactly_the_different_places(before, after):
    result = compare(Side({"resources": {"a": {"p": before}}}), Side({"resources": {"a": {"p": after}}}))
    alike = orjson.dumps(before, option=orjson.OPT_SORT_KEYS) == orjson.dumps(
        after, option=orjson.OPT_SORT_KEYS
    )
    assert bool(result) != alike
    for change in result["resources"].changed["a"] if result else ():
        assert change.before is not change.after
        assert change.path.startswith("p")
