"""Values as the pages of the console show them."""

from __future__ import annotations

import pytest

from orchestrator_console.formats import counted, states


@pytest.mark.parametrize(
    ("sentence", "shown"),
    [
        (
            "no action in progress: UPDATE_COMPLETE since 12:00",
            "no action in progress: update complete since 12:00",
        ),
        ("CREATE is in progress since 12:00", "create is in progress since 12:00"),
        ("waits for WEB_SERVERS and DB", "waits for WEB_SERVERS and DB"),
        ("DELETE_FAILED: HTTP 409", "delete failed: HTTP 409"),
    ],
)
def test_states_in_sentences_are_words(sentence: str, shown: str) -> None:
    assert states(sentence) == shown


def test_a_noun_follows_its_number() -> None:
    assert [counted(value, "group") for value in (0, 1, 2)] == ["0 groups", "1 group", "2 groups"]
