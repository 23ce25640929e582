"""`orchestrator why`: the reasons why a stack or a resource is not finished."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import click
from rich.console import Console
from rich.text import Text

from orchestrator.cli.exit_codes import clean, one_line
from orchestrator.cli.options import Session, client_command, stack_argument
from orchestrator.cli.output import render
from orchestrator.cli.output.event_line import counts_text
from orchestrator.json_types import JsonMapping

MAX_DEPENDENTS: Final = 3  # shown of each waiting resource
STYLES: Final = {
    "failed": "red",
    "retrying": "red",
    "paused-at-hook": "magenta",
    "waiting-for": "dim",
    "queued": "dim",
}


@click.command()
@stack_argument
@click.argument("resource", required=False)
@click.option(
    "--limit",
    type=click.IntRange(1),
    default=30,
    show_default=True,
    help="Maximum number of waiting resources.",
)
@client_command
def why(session: Session, *, name: str, resource: str | None, limit: int) -> None:
    """Explain why a stack is not finished.

    For each waiting resource: the cause, since when, and the next step. Resources that block other resources
    come first. With RESOURCE, only this resource.
    """
    stack = session.client.stacks.find(name)
    explanation, remaining = session.client.diagnosis.why(stack, resource, limit)
    if session.as_json:
        session.document({"why": explanation, "more": remaining})
        return
    out = session.out()
    _print_stack(out, explanation)
    waiting = explanation["waiting"]
    for node in waiting:
        _print_node(out, node)
    for item in explanation.get("repairs") or ():
        _print_unrepaired(out, item)
    if resource and not waiting:
        status, reason = explanation["resource_status"], explanation["resource_status_reason"]
        noted = "" if reason in ("", "state changed") else f" ({one_line(reason)})"
        _print(out, Text(f"  {clean(resource)} is not waiting: {status}{noted}"))
    if remaining:
        _print(out, Text(f"  … and more; use --limit {limit * 2}", style="dim"))


def _print_unrepaired(out: Console, item: JsonMapping) -> None:
    line = Text("  ")
    line.append(clean(item["resource_name"]), style="bold")
    line.append(f"  {item['verdict']}", style="red")
    line.append(f"  not repaired ({item['status']}): {one_line(item['reason'])}")
    _print(out, line)


def _print_stack(out: Console, explanation: JsonMapping) -> None:
    line = Text(f"{clean(explanation['stack_name'])} ", style="bold")
    line.append_text(render.status(explanation["stack_status"]))
    _print(out, line)
    _print(out, Text(f"  {one_line(explanation['text'])}"))
    progress = explanation.get("progress", {})
    if progress.get("total") and explanation["stack_status"].endswith("_IN_PROGRESS"):
        _print(out, Text(f"  {counts_text(progress)}"))
    if explanation["timeout_at"]:
        _print(out, Text(f"  times out at {render.time(explanation['timeout_at'])}", style="dim"))
    for cause in explanation["causes"]:
        _print(out, Text(f"  ✘ {clean(cause['resource_name'])}: {one_line(cause['reason'])}", style="red"))
    omitted = explanation["causes_count"] - len(explanation["causes"])
    if omitted > 0:
        _print(out, Text(f"  … and {omitted} more failures", style="red"))
    if explanation["word"] in {"failed", "winding-down"}:
        accepts = ", ".join(explanation["accepts"]) or "nothing"
        _print(out, Text(f"  accepted now: {accepts}", style="dim"))


def _print_node(out: Console, node: JsonMapping) -> None:
    style = STYLES.get(node["word"], "yellow")
    line = Text("  ")
    line.append(clean(node["resource_name"]), style="bold")
    if node["visit"] == "cleanup":
        line.append(" (to be deleted)", style="dim")
    line.append(f"  {node['word']}", style=style)
    line.append(f"  {one_line(node['text'])}")
    _print(out, line)
    if node.get("nested_stack"):
        _print(out, Text(f"    └ details: orchestrator why {node['nested_stack']['id']}", style="dim"))
    for name in _dependents(node):
        _print(out, Text(f"    └ blocks {clean(name)}", style="dim"))


def _dependents(node: JsonMapping) -> Iterable[str]:
    shown = node["holds_up"][:MAX_DEPENDENTS]
    yield from shown
    if node["holds_up_count"] > len(shown):
        yield f"{node['holds_up_count'] - len(shown)} more"


def _print(out: Console, line: Text) -> None:
    out.print(line, soft_wrap=True)
