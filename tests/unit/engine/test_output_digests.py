"""Digests of the outputs of resources with early dependents (operations/adr/0015)."""

from __future__ import annotations

import pytest

from orchestrator.engine.output_digests import has_early_parts, is_current_input, is_early


@pytest.mark.parametrize(
    ("recorded", "current", "expected"),
    [
        ("a", "a", True),
        (None, None, True),
        ("", "", True),
        ("a", "b", False),
        ("a", None, False),
        ("early-i", "early-i/early-a", True),
        ("early-i", "z/early-i/early-a", True),
        ("early-i/early-a", "z/early-i/early-a", True),
        ("early-i/early-a", "early-i", False),
        ("early-j", "z/early-i/early-a", False),
        ("early-i/early-b", "z/early-i/early-a", False),
        ("y/early-i/early-a", "z/early-i/early-a", False),
        ("early-i", "z", False),
    ],
)
def test_a_dependent_is_current_while_the_outputs_that_it_has_seen_are_unchanged(
    recorded: str | None, current: str | None, expected: bool
) -> None:
    assert is_current_input(recorded, current) is expected


def test_a_digest_shows_whether_the_object_was_ready() -> None:
    digests = (None, "z", "early-i", "z/early-i/early-a")
    assert [is_early(digest) for digest in digests] == [False, False, True, False]
    assert [has_early_parts(digest) for digest in digests] == [False, False, True, True]
