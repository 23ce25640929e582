"""The kinds of temporary refusals, as the documentation describes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.engine.check.refusals import REFUSALS, UNREACHABLE, Refusal

DOCUMENT = Path(__file__).parents[4] / "docs" / "updates.md"


@pytest.mark.parametrize("refusal", REFUSALS, ids=[refusal.kind for refusal in REFUSALS])
def test_the_documentation_has_the_limit_and_the_text_of_each_kind(refusal: Refusal) -> None:
    [row] = [line for line in DOCUMENT.read_text().splitlines() if f'{refusal.text}" |' in line]
    seconds = refusal.seconds
    limit = "the timeout of the stack" if seconds is None else f"{seconds / 60:g} minutes"
    _, _, documented, told, _, _ = (cell.strip() for cell in row.split("|"))
    assert documented.startswith(limit)
    assert told.startswith("`unreachable`" if refusal is UNREACHABLE else "`refused`")


def test_only_the_text_of_an_unreachable_service_tells_of_no_answer() -> None:
    told = {refusal.kind for refusal in REFUSALS if "no answer" in refusal.text}
    assert told == {UNREACHABLE.kind}
