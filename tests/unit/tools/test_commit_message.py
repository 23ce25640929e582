"""The check of commit messages."""

from __future__ import annotations

import pytest

from tools.commit_message import faults


@pytest.mark.parametrize(
    "message",
    [
        "store: rename the lease columns\n",
        "api, tasks: bind the request id\n\nWhy.\n",
        "docs: fix\n# comment\n",
    ],
)
def test_a_message_of_the_form_passes(message: str) -> None:
    assert faults(message) == []


@pytest.mark.parametrize(
    ("message", "fault"),
    [
        ("", "the summary line is empty"),
        ("store: " + "x" * 66 + "\n", "the summary has 73 characters; the maximum is 72"),
        ("Rename the lease columns\n", "the summary is not of the form `area: imperative summary`"),
        ("store: rename\nWhy.\n", "the second line is not blank"),
    ],
)
def test_a_fault_is_named(message: str, fault: str) -> None:
    assert faults(message) == [fault]
