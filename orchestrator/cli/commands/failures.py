"""`orchestrator failures`: every cause of a stack's failure as a tree, with nested and deleted stacks."""

from __future__ import annotations

from typing import Final

import click
from rich.text import Text
from rich.tree import Tree

from orchestrator.cli.exit_codes import clean, one_line
from orchestrator.cli.options import Session, client_command, stack_argument
from orchestrator.cli.output import render
from orchestrator.json_types import JsonMapping

MAX_LEVELS: Final = 100  # of nested stacks; servers allow fewer
UNCLASSIFIED: Final = "other"  # the class of an unknown kind of failure


@click.command()
@stack_argument
@click.option(
    "--revision", type=int, metavar="NUMBER", help="Failure of this revision.  [default: the last failure]"
)
@client_command
def failures(session: Session, *, name: str, revision: int | None) -> None:
    """Show the causes of a stack's failure as a tree.

    Each cause has the resource, the time, the reason and the next step. Works after a rollback too, and for a
    deleted stack by its id.
    """
    stack = session.client.stacks.find(name)
    tree = session.client.diagnosis.failure_tree(stack, revision, MAX_LEVELS)
    if session.as_json:
        session.document(tree)
        return
    if not tree["failures"]:
        session.say(f"No resource of stack {stack.name} has failed.")
        return
    root = Tree(Text(clean(stack.name), style="bold"))
    for failure in tree["failures"]:
        _add(root, failure)
    session.out().print(root, soft_wrap=True)
    if tree["more"]:
        session.say("… and more causes")


def _add(branch: Tree, failure: JsonMapping) -> None:
    """Add a failure; reason and next step are printed for causes without their own causes."""
    line = Text("✘ ", style="red")
    line.append(clean(failure["resource_name"]), style="bold")
    line.append(f"  {clean(failure['resource_type'] or '')}", style="dim")
    line.append(f"  {render.time(failure['failure_time'])}", style="dim")
    nested, causes = failure["nested_stack"], failure["causes"]
    if nested is not None:
        line.append(f"  stack {clean(nested['name'])} ", style="dim")
        line.append_text(render.status(nested["status"]))
    below = branch.add(line)
    for cause in causes:
        _add(below, cause)
    if causes:
        return
    below.add(Text(one_line(failure["reason"]), style="red"))
    facts = [failure["class"]] if failure["class"] != UNCLASSIFIED else []
    if (failure["attempts"] or 1) > 1:
        facts.append(f"{failure['attempts']} attempts")
    if failure["physical_resource_id"]:
        facts.append(f"id {clean(failure['physical_resource_id'])}")
    if failure.get("service"):
        facts.append(f"service {clean(failure['service'])}")
    if failure["request_id"]:
        facts.append(f"request {clean(failure['request_id'])}")
    if facts:
        below.add(Text(", ".join(facts), style="dim"))
    below.add(Text(f"next: {failure['next_step']}"))
