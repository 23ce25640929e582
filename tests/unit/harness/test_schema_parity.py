"""The schemas of our types against the recorded facts of Heat's types."""

from __future__ import annotations

import pytest

from qa.schema_parity.comparison import Difference, Explanation, differences, stale, unexplained
from qa.schema_parity.recorded import compared


def facts(**given):
    return {"support": "SUPPORTED", "attributes": {"show": "map"}, **given}


def found(heat, ours):
    return [
        (one.kind, one.path, one.heat, one.ours)
        for one in differences({"A": heat}, {"A": ours} if ours else {})
    ]


def test_every_difference_from_heat_is_explained_and_every_explanation_is_needed():
    ours, explained, counts = compared()
    assert [str(one) for one in unexplained(ours, explained)] == []
    assert stale(ours, explained) == []
    assert (counts.types, counts.properties) >= (166, 1269)


@pytest.mark.parametrize(
    ("heat", "ours", "difference"),
    [
        (facts(), None, ("missing type", "", "SUPPORTED", None)),
        (facts(), facts(support="HIDDEN"), ("support", "", "SUPPORTED", "HIDDEN")),
        (facts(), facts(support="HIDDEN", placeholder=True), ("support", "", "SUPPORTED", "HIDDEN")),
        (
            facts(properties={"a": {"type": "string", "support": "HIDDEN"}}),
            facts(),
            ("missing property", "a", "HIDDEN", None),
        ),
        (
            facts(properties={"a": {"type": "string", "required": True}}),
            facts(properties={"a": {"type": "string"}}),
            ("required", "a", True, None),
        ),
        (
            facts(properties={"a": {"type": "string", "constraints": [["custom", "x"], ["length", 1, 2]]}}),
            facts(properties={"a": {"type": "string", "constraints": [["length", 1, 2]]}}),
            ("constraints", "a", [["custom", "x"]], []),
        ),
        (
            facts(
                properties={"a": {"type": "list", "members": {"*": {"type": "map", "members": {"b": {}}}}}}
            ),
            facts(properties={"a": {"type": "list", "members": {"*": {"type": "map", "members": {}}}}}),
            ("missing property", "a.*.b", "SUPPORTED", None),
        ),
        (
            facts(update_policy={"a": {"type": "integer", "default": 1}}),
            facts(update_policy={"a": {"type": "integer"}}),
            ("default", "update_policy:a", 1, None),
        ),
        (
            facts(attributes={"a": "string live"}),
            facts(attributes={"a": "string"}),
            ("attribute not live", "a", True, False),
        ),
        (facts(rules=["replace a b"]), facts(), ("missing rule", "replace a b", "replace a b", None)),
    ],
)
def test_each_kind_of_difference_is_found(heat, ours, difference):
    assert found(heat, ours) == [difference]


def test_a_live_attribute_and_an_equal_default_are_no_difference():
    heat = facts(properties={"a": {"type": "boolean", "default": True}}, attributes={"a": "string"})
    ours = facts(properties={"a": {"type": "boolean", "default": "true"}}, attributes={"a": "string live"})
    assert found(heat, ours) == []


def test_an_explanation_covers_its_kind_and_paths_only():
    given = Explanation("A::*", "default", "a | b.*", "because")
    covered = [Difference("A::B", "default", path, 1, 2) for path in ("a", "b.c")]
    others = [Difference("A::B", "type", "a", 1, 2), Difference("A::B", "default", "c", 1, 2)]
    assert unexplained([*covered, *others], [given]) == others
    assert stale(others, [given]) == [given]
    assert stale(covered, [given]) == []
