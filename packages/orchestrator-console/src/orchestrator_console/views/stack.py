"""The pages of a stack: summary, resources, events, failures, drift, outputs."""

from __future__ import annotations

from typing import Final

from flask import Blueprint, Response, request
from werkzeug.exceptions import NotFound

from orchestrator_console import actions
from orchestrator_console.api_client import location_path
from orchestrator_console.context import api, live_page, marker_of, page, path_of, redirect_to, stack_path
from orchestrator_console.failures import leaves
from orchestrator_console.json_types import JsonObject
from orchestrator_console.progress import Progress, remaining
from orchestrator_console.views import repairs

stack = Blueprint("stack", __name__)

BASE: Final = "/<project>/stacks/<name>/<stack_id>"
CAUSES: Final = 3  # entries of `why` on the summary
PAGE: Final = 50
MAX_REPAIRS: Final = 10  # shown of those that wait for an approval
MAX_ENDED: Final = 20  # verdicts that have ended
ALL_LEVELS: Final = 100  # the API reduces it to its limit
STATES: Final = ("COMPLETE", "FAILED", "IN_PROGRESS")
VERDICTS: Final = ("MODIFIED", "MISSING", "FAILED", "UNKNOWN")


@stack.get("/<project>/stacks/<name>")
@stack.get("/<project>/stacks/<name>/")
def find(project: str, name: str) -> Response:
    """Redirect to the stack of a name or an id."""
    _chunks, status, headers = api().open(path_of(project, "stacks", name))
    if status != 302:
        raise NotFound(f"The Stack ({name}) could not be found.")
    _, _, _, found, stack_id, *_ = location_path(headers).split("/")
    return redirect_to("stack.summary", project=project, name=found, stack_id=stack_id)


@stack.get(BASE)
def summary(project: str, name: str, stack_id: str) -> str:
    """Show the state in a sentence, the progress, and the reasons for waiting."""
    shown = read_stack(project, name, stack_id)
    why = api().get(stack_path(project, name, stack_id, "why"), {"limit": CAUSES}, shared=True)["why"]
    progress = Progress.of(why["progress"])
    return live_page(
        "stack_summary.html",
        stack=shown,
        tab="summary",
        why=why,
        progress=progress,
        remaining=remaining(progress, why["since"])
        if shown["stack_status"].endswith("IN_PROGRESS")
        else None,
        actions=actions.offered(shown, why["accepts"]),
    )


@stack.get(f"{BASE}/resources")
def resources(project: str, name: str, stack_id: str) -> str:
    """List the resources by name."""
    query: dict[str, object] = {key: request.args.get(key, "") for key in ("status", "type", "marker")}
    wanted = request.args.get("name", "").strip()
    listed = api().get(
        stack_path(project, name, stack_id, "resources"),
        query | {"limit": PAGE, "search": wanted},
        shared=True,
    )
    rows = listed["resources"]
    return live_page(
        "stack_resources.html",
        stack=read_stack(project, name, stack_id),
        tab="resources",
        resources=rows,
        query=query | {"name": wanted},
        states=STATES,
        next_marker=rows[-1]["resource_name"] if len(rows) == PAGE else "",
    )


@stack.get(f"{BASE}/events")
def events(project: str, name: str, stack_id: str) -> str:
    """List the events of the stack and the stacks below it, the newest first."""
    query: dict[str, object] = {"marker": request.args.get("marker", "")}
    depth = request.args.get("nested", "yes")
    listed = api().get(
        stack_path(project, name, stack_id, "events"),
        query | {"limit": PAGE, "nested_depth": ALL_LEVELS if depth == "yes" else 0},
        shared=True,
    )["events"]
    return live_page(
        "stack_events.html",
        stack=read_stack(project, name, stack_id),
        tab="events",
        events=listed,
        nested=depth,
        marker=query["marker"],
        next_marker=listed[-1]["id"] if len(listed) == PAGE else "",
    )


@stack.get(f"{BASE}/events/stream")
def stream(project: str, name: str, stack_id: str) -> Response:
    """Tell the page that the stack has new events; the page needs nothing else of them."""
    query = {"nested_depth": ALL_LEVELS, "after": "now", "merged": "true"}
    chunks, status, headers = api().open(stack_path(project, name, stack_id, "events", "stream"), query)
    return Response(chunks, status, headers)


@stack.get(f"{BASE}/failures")
def failures(project: str, name: str, stack_id: str) -> str:
    """Show the root causes, at any depth of nesting."""
    query = {"nested_depth": ALL_LEVELS, "revision": request.args.get("revision", "")}
    found = api().get(stack_path(project, name, stack_id, "failures"), query)
    shown = read_stack(project, name, stack_id, with_diagnostics=True)
    return page(
        "stack_failures.html",
        stack=shown,
        tab="failures",
        causes=leaves(found["failures"], shown.get("diagnostics") or ()),
        more=found["more"],
        revision=query["revision"],
    )


@stack.get(f"{BASE}/drift")
def drift(project: str, name: str, stack_id: str) -> str:
    """Show the resources that are not in sync."""
    query: dict[str, object] = {key: request.args.get(key, "") for key in ("verdict", "marker")}
    listed = api().get(stack_path(project, name, stack_id, "observations"), query | {"limit": PAGE})
    rows, shown = listed["observations"], read_stack(project, name, stack_id)
    ended = api().get(stack_path(project, name, stack_id, "observations", "history"), {"limit": MAX_ENDED})
    waiting = [] if shown["deletion_time"] else repairs.pending(project, stack_id=stack_id, limit=MAX_REPAIRS)
    return page(
        "stack_drift.html",
        stack=shown,
        repairs=waiting,
        more_repairs=len(waiting) == MAX_REPAIRS,
        effects=repairs.ACTIONS,
        tab="drift",
        rows=rows,
        ended=ended["history"],
        counts=listed["counts"],
        verdicts=VERDICTS,
        query=query,
        next_marker=marker_of(listed, "next") and _marker(listed),
    )


@stack.get(f"{BASE}/outputs")
def outputs(project: str, name: str, stack_id: str) -> str:
    """List the outputs with their values; secret values are masked."""
    return _outputs_page(project, name, stack_id)


@stack.post(f"{BASE}/outputs")
def reveal(project: str, name: str, stack_id: str) -> str:
    """List the outputs with the value of a secret one, which is its own request for the audit."""
    return _outputs_page(project, name, stack_id, request.form.get("output", ""))


def _outputs_page(project: str, name: str, stack_id: str, revealed: str = "") -> str:
    path, shown = stack_path(project, name, stack_id, "outputs"), read_stack(project, name, stack_id)
    rows = api().get(path, {"with_values": "true"})["outputs"]
    if revealed:
        value = api().get(f"{path}/{revealed}")["output"]
        rows = [value | {"revealed": True} if row["output_key"] == revealed else row for row in rows]
    return page("stack_outputs.html", stack=shown, tab="outputs", outputs=rows, live=not revealed)


def read_stack(project: str, name: str, stack_id: str, *, with_diagnostics: bool = False) -> JsonObject:
    """Return a stack."""
    query = {"resolve_outputs": "false", "with_diagnostics": str(with_diagnostics).lower()}
    path = stack_path(project, name, stack_id)
    shown: JsonObject = api().get(path, query, shared=True)["stack"]
    return shown


def _marker(document: JsonObject) -> str:
    """Return the marker in the link to the next page."""
    [href] = [entry["href"] for entry in document["links"] if entry["rel"] == "next"]
    return str(href).rpartition("marker=")[2].partition("&")[0]
