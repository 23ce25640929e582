"""The change of a template that makes the observed state the desired state."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.engine.observation.adoption import Candidate, adoption

DOCUMENT: dict[str, Any] = {
    "resources": {
        "a": {"type": "T", "properties": {"x": {"get_param": "p"}}},
        "b/c": {"type": "T"},
        "d": {"type": "T"},
    }
}
WORDS = ("resources", "properties")


def changed(name: str, **values: Any) -> Candidate:
    return Candidate(name, name, "MODIFIED", values)


def test_found_values_replace_functions_and_missing_sections_are_added() -> None:
    found = adoption(DOCUMENT, WORDS, [changed("a", x=1, y=[2]), changed("b/c", z={"k": "v"})])
    assert list(found.patch) == [
        {"op": "replace", "path": "/resources/a/properties/x", "value": 1},
        {"op": "add", "path": "/resources/a/properties/y", "value": [2]},
        {"op": "add", "path": "/resources/b~1c/properties", "value": {}},
        {"op": "add", "path": "/resources/b~1c/properties/z", "value": {"k": "v"}},
    ]
    assert found.template["resources"]["a"]["properties"] == {"x": 1, "y": [2]}
    assert DOCUMENT["resources"]["a"]["properties"] == {"x": {"get_param": "p"}}


def test_a_missing_resource_is_removed_unless_others_refer_to_it() -> None:
    gone = Candidate("d", "d", "MISSING", {})
    assert list(adoption(DOCUMENT, WORDS, [gone]).patch) == [{"op": "remove", "path": "/resources/d"}]
    kept = adoption(DOCUMENT, WORDS, [gone._replace(required_by=["a", "output o"])])
    assert [left.reason for left in kept.left] == ["a, output o refer to it: remove the references first"]
    assert not kept.patch


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"own": False}, "nested stack"),
        ({"external": True}, "external"),
        ({"verdict": "FAILED"}, "in error"),
        ({"verdict": "UNKNOWN", "reason": "503"}, "could not be observed: 503"),
        ({"name": "elsewhere"}, "does not contain it"),
        ({"secrets": frozenset({"x"})}, "secret"),
    ],
)
def test_what_cannot_be_adopted_is_left_with_its_reason(options: dict[str, Any], reason: str) -> None:
    found = adoption(DOCUMENT, WORDS, [changed("a", x=1)._replace(**options)])
    assert not found.patch
    assert reason in found.left[0].reason
