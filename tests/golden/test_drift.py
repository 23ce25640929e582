"""What an observation of an object means, for each caller, evidence and earlier state.

`python tests/golden/test_drift.py` renews the table; then review the difference.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, ClassVar

from orchestrator.engine.check.outcome import Attempts, outcome_of_observation
from orchestrator.engine.observation.differences import Recorded
from orchestrator.engine.observation.drift import DRIFTED, IN_SYNC, Difference, Drift
from orchestrator.engine.observation.judgement import MISSING, Evidence, Unlisted, Unobserved, judge
from orchestrator.engine.observation.repairs import Fault, action_for, corrected, obstacle
from orchestrator.operations.observation.observe import _verdict
from orchestrator.resources.base import Observation, Property, ResourceType

TABLE = Path(__file__).parent / "drift.txt"


class Machine(ResourceType):
    """A type with a property."""

    name = "Test::Machine"
    properties: ClassVar = {"size": Property("string", "Size.", update_allowed=True)}


BEFORE: dict[str, Drift] = {
    "in sync": IN_SYNC,
    "modified": Drift("MODIFIED", "", (Difference("size", "small", "large"),)),
    "modified otherwise": Drift("MODIFIED", "", (Difference("size", "small", "huge"),)),
    "missing": Drift("MISSING", MISSING),
    "missing, unconfirmed": Drift("MISSING", MISSING, confirmed=False),
    "failed": Drift("FAILED", "no host"),
    "failed, unconfirmed": Drift("FAILED", "no host", confirmed=False),
}
BEFORE |= {f"{name}, unknown": replace(before, unknown="timeout") for name, before in BEFORE.items()}
EVIDENCE: dict[str, Evidence] = {
    "equal": Observation(exists=True, properties={"size": "small"}),
    "different": Observation(exists=True, properties={"size": "large"}),
    "no properties": Observation(exists=True),
    "not ready": Observation(exists=True, ready=False, reason="BUILD"),
    "next step": Observation(exists=True, step="attach", properties={"size": "large"}),
    "in error": Observation(exists=True, error="no disk"),
    "in error, busy": Observation(exists=True, error="no disk", busy=True),
    "absent": Observation(exists=False),
    "unlisted": Unlisted(),
    "unobserved": Unobserved("refused"),
}
MACHINE = Machine()
RECORDED = {
    "settled": Recorded(MACHINE, {"size": "small"}, {}),
    "unsettled": Recorded(MACHINE, {"size": "small"}, {}, settled=False),
}


def scans() -> Iterator[tuple[str, ...]]:
    for after_outage, (found, evidence), (known, before) in product(
        (False, True), EVIDENCE.items(), BEFORE.items()
    ):
        caller = "scan after an outage" if after_outage else "scan"
        after = judge(RECORDED["settled"], evidence, before, after_outage=after_outage)
        yield caller, found, known, _text(before, after)
    for found, evidence in EVIDENCE.items():
        yield "scan, unsettled", found, "in sync", _text(IN_SYNC, judge(RECORDED["unsettled"], evidence))


def requests() -> Iterator[tuple[str, ...]]:
    for found, evidence in EVIDENCE.items():
        yield "request", found, "-", _text(IN_SYNC, judge(RECORDED["settled"], evidence))
        if isinstance(evidence, Observation):
            yield "pass", found, "-", ": ".join(filter(None, _verdict(evidence, "id")))
            outcome = outcome_of_observation(evidence, name="machine", attempts=Attempts(0, 1, 60.0))
            yield "visit", found, "-", type(outcome).__name__


def repairs() -> Iterator[tuple[str, ...]]:
    kinds: dict[str, dict[str, Any]] = {
        "updatable": {"properties": ("size",)},
        "fixed": {"properties": ("size",), "fixed": frozenset({"size"})},
        "unset": {"properties": ("size",), "fixed": frozenset({"size"}), "unset": frozenset({"size"})},
        "accepted": {},
        "recoverable": {"recoverable": True},
        "external": {"properties": ("size",), "external": True},
        "restricted": {"properties": ("size",), "restricted": frozenset({"update", "replace"})},
    }
    for fact, (name, facts) in product(DRIFTED, kinds.items()):
        fault = Fault(fact, **facts)
        action = action_for(fault)
        shown = (str(action), ",".join(sorted(corrected(fault))), obstacle(fault, action))
        yield "repair", name, fact, "; ".join(filter(None, shown))


def _text(before: Drift, after: Drift) -> str:
    facts = [
        after.verdict,
        "" if after.verdict == after.state else f"last {after.state}",
        "" if after.confirmed else "unconfirmed",
        after.reason,
        ",".join(f"{item.property} {item.expected}/{item.found}" for item in after.differences),
        after.unknown,
        "no news" if after == before else "",
    ]
    return "; ".join(filter(None, facts))


def table() -> str:
    rows = [*scans(), *requests(), *repairs()]
    return "".join(f"{' | '.join(row)}\n" for row in rows)


def test_the_meaning_of_an_observation_changes_only_on_purpose() -> None:
    assert table() == TABLE.read_text()


if __name__ == "__main__":
    TABLE.write_text(table())
