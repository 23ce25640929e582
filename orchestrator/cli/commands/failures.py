"""`orchestrator failures STACK`: every cause of a failure, in the stacks nested in it too, gone or not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click
from rich.text import Text
from rich.tree import Tree

from orchestrator.cli.exit_codes import clean, one_line
from orchestrator.cli.options import Session, client_command
from orchestrator.cli.output import render

DEEPEST = 100  # levels; the server has fewer


@click.command()
@click.argument("name", metavar="STACK")
@click.option("--revision", type=int, metavar="NUMBER", help="Of this one; else of what failed last.")
@client_command
def failures(session: Session, *, name: str, revision: int | None) -> None:
    """Tell why STACK failed, down to the causes: what failed, where, when, and what to do about it.

    Also after a rollback, and of a deleted stack by its id.
    """
    found = session.client.find(name)
    told = session.client.failure_tree(found, revision, DEEPEST)
    if session.as_json:
        session.document(told)
        return
    if not told["failures"]:
        session.say(f"No resource of stack {found.name} has failed.")
        return
    top = Tree(Text(clean(found.name), style="bold"))
    for one in told["failures"]:
        _grow(top, one)
    session.out().print(top, soft_wrap=True)
    if told["more"]:
        session.say("… and more causes than are told here")


def _grow(above: Tree, one: Mapping[str, Any]) -> None:
    """Add a failure with its causes; the words are those of the causes alone."""
    line = Text("✘ ", style="red")
    line.append(clean(one["resource_name"]), style="bold")
    line.append(f"  {clean(one['resource_type'] or '')}", style="dim")
    line.append(f"  {render.clock(one['failure_time'])}", style="dim")
    nested, causes = one["nested_stack"], one["causes"]
    if nested is not None:
        line.append(f"  stack {clean(nested['name'])} ", style="dim")
        line.append_text(render.status(nested["status"]))
    branch = above.add(line)
    for cause in causes:
        _grow(branch, cause)
    if causes:
        return
    branch.add(Text(one_line(one["reason"]), style="red"))
    facts = [one["class"]]
    if (one["attempts"] or 1) > 1:
        facts.append(f"{one['attempts']} attempts")
    if one["physical_resource_id"]:
        facts.append(f"id {clean(one['physical_resource_id'])}")
    if one["request_id"]:
        facts.append(f"request {clean(one['request_id'])}")
    branch.add(Text(", ".join(facts), style="dim"))
    branch.add(Text(f"next: {one['next_step']}"))
