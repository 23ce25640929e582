"""`orchestrator drift`."""

from __future__ import annotations

import json
from typing import Any

from tests.unit.cli.command_line import Run, run, stub
from tests.unit.cli.stub import Stub

__all__ = ["run", "stub"]

SERVICE = {"service": "nova", "unknown_since": None, "unknown_reason": None, "loss": None}
AT = "2026-01-31T12:00:00Z"


def deviation(name: str, verdict: str, **options: Any) -> dict[str, Any]:
    return {
        "stack_name": "shop",
        "resource_name": name,
        "resource_type": "OS::Nova::Server",
        "verdict": verdict,
        "since": AT,
        "reason": "",
        "differences": [],
        **options,
    }


def answer(*rows: dict[str, Any], **service: Any) -> dict[str, Any]:
    return {"observations": list(rows), "services": [{**SERVICE, **service}]}


def test_drift_lists_differences_and_ends_with_two(stub: Stub, run: Run) -> None:
    changed = deviation(
        "web", "MODIFIED", differences=[{"property": "metadata.a", "expected": "1", "found": None}]
    )
    stub.add("shop", answers={"observations": answer(changed, deviation("db", "MISSING", reason="gone"))})
    result = run("drift", "shop")
    assert result.exit_code == 2
    assert "metadata.a: 1 → null" in result.output
    assert "MISSING" in result.output
    assert "gone" in result.output


def test_no_drift_ends_with_zero(stub: Stub, run: Run) -> None:
    stub.add("shop", answers={"observations": answer()})
    result = run("drift", "shop")
    assert (result.exit_code, result.output) == (0, "No resource of stack shop is known to deviate.\n")


def test_unknown_is_no_drift_and_is_explained(stub: Stub, run: Run) -> None:
    found = answer(
        deviation("web", "UNKNOWN", reason="503"),
        unknown_since=AT,
        unknown_reason="down",
        loss={"since": AT, "lost": 9, "of": 10},
    )
    stub.add("shop", answers={"observations": found})
    result = run("drift", "shop")
    assert result.exit_code == 0
    assert "nova could not be observed since" in result.output
    assert "nova has lost 9 of 10 objects" in result.output


def test_all_stacks_in_pages_as_json(stub: Stub, run: Run) -> None:
    link = {"rel": "next", "href": f"{stub.url}/v1/demo/observations?marker=7"}
    stub.answers["GET observations"] = [
        answer(deviation("a", "MISSING")) | {"links": [link]},
        answer(deviation("b", "MISSING")),
    ]
    result = run("drift", "--all", "--json")
    assert result.exit_code == 2
    assert [row["resource_name"] for row in json.loads(result.output)["observations"]] == ["a", "b"]
    assert [query.get("marker") for _, _, query, *_ in stub.requests] == [None, ["7"]]


def test_a_stack_or_all_is_required(run: Run) -> None:
    for arguments in (("show",), ("shop", "--all")):
        result = run("drift", *arguments)
        assert result.exit_code == 1
        assert "use --all" in result.output


def ended(name: str, **options: Any) -> dict[str, Any]:
    return deviation(name, "MISSING", reason="gone", first_seen=AT, ended=AT, **options)


def test_the_history_lists_ended_differences_of_nested_stacks(stub: Stub, run: Run) -> None:
    rows = [ended("db", stack_name="shop-group-x"), ended("web")]
    stub.add("shop", answers={"observations/history": {"history": rows}})
    result = run("drift", "history", "shop")
    assert result.exit_code == 0
    assert [line.split()[:2] for line in result.output.splitlines()[1:]] == [
        ["shop-group-x", "db"],
        ["shop", "web"],
    ]


def test_the_history_ends_at_the_limit(stub: Stub, run: Run) -> None:
    stub.answers["GET observations/history"] = {"history": [ended("a"), ended("b"), ended("c")]}
    result = run("drift", "history", "--all", "--limit", "2", "--json")
    assert [row["resource_name"] for row in json.loads(result.output)["history"]] == ["a", "b"]


def test_a_history_without_verdicts_says_so(stub: Stub, run: Run) -> None:
    stub.add("shop", answers={"observations/history": {"history": []}})
    assert run("drift", "history", "shop").output == "No difference of stack shop has ended.\n"
