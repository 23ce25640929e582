"""`orchestrator why …`: what a stack waits for, or one of its resources."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from orchestrator.cli.exit_codes import clean, one_line
from orchestrator.cli.options import Session, client_command
from orchestrator.cli.output import render
from orchestrator.cli.watch.progress import counted

STYLES = {
    "failed": "red",
    "retrying": "red",
    "paused-at-hook": "magenta",
    "waiting-for": "dim",
    "queued": "dim",
}


@click.command()
@click.argument("name", metavar="STACK")
@click.argument("resource", required=False)
@click.option("--limit", type=click.IntRange(1), default=30, show_default=True, help="At most so many.")
@client_command
def why(session: Session, *, name: str, resource: str | None, limit: int) -> None:
    """Tell why STACK, or one RESOURCE of it, is not done: what each waits for, since when, what comes next.

    Those that hold others up come first.
    """
    found = session.client.find(name)
    told, more = session.client.why(found, resource, limit)
    if session.as_json:
        session.document({"why": told, "more": more})
        return
    out = session.out()
    _head(out, told)
    waiting = told["waiting"]
    for node in waiting:
        _tell(out, node)
    if resource and not waiting:
        status, reason = told["resource_status"], told["resource_status_reason"]
        noted = "" if reason in ("", "state changed") else f" ({one_line(reason)})"
        _print(out, Text(f"  nothing is to be done about {clean(resource)}: {status}{noted}"))
    if more:
        _print(out, Text(f"  … and more; --limit {limit * 2} shows further", style="dim"))


def _head(out: Console, told: Mapping[str, Any]) -> None:
    line = Text(f"{clean(told['stack_name'])} ", style="bold")
    line.append_text(render.status(told["stack_status"]))
    _print(out, line)
    _print(out, Text(f"  {one_line(told['text'])}"))
    if told.get("progress", {}).get("total") and told["stack_status"].endswith("_IN_PROGRESS"):
        _print(out, Text(f"  {counted(told['progress'])}"))
    if told["timeout_at"]:
        _print(out, Text(f"  it times out at {render.date(told['timeout_at'])}", style="dim"))
    for cause in told["causes"]:
        _print(out, Text(f"  ✘ {clean(cause['resource_name'])}: {one_line(cause['reason'])}", style="red"))
    left = told["causes_count"] - len(told["causes"])
    if left > 0:
        _print(out, Text(f"  … and {left} more failures", style="red"))
    if told["word"] in {"failed", "winding-down"}:
        _print(out, Text(f"  accepted now: {', '.join(told['accepts']) or 'nothing'}", style="dim"))


def _tell(out: Console, node: Mapping[str, Any]) -> None:
    style = STYLES.get(node["word"], "yellow")
    line = Text("  ")
    line.append(clean(node["resource_name"]), style="bold")
    if node["visit"] == "cleanup":
        line.append(" (to be removed)", style="dim")
    line.append(f"  {node['word']}", style=style)
    line.append(f"  {one_line(node['text'])}")
    _print(out, line)
    if node.get("nested_stack"):
        _print(out, Text(f"    └ further: orchestrator why {node['nested_stack']['id']}", style="dim"))
    for name in _below(node):
        _print(out, Text(f"    └ holds up {clean(name)}", style="dim"))


def _below(node: Mapping[str, Any]) -> Iterable[str]:
    shown = node["holds_up"][:3]
    yield from shown
    if node["holds_up_count"] > len(shown):
        yield f"{node['holds_up_count'] - len(shown)} more"


def _print(out: Console, line: Text) -> None:
    out.print(line, soft_wrap=True)
