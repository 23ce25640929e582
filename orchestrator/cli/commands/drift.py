"""`orchestrator drift …`: differences between the desired and the observed state."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import click

from orchestrator.cli.exit_codes import Exit, Failure, clean, one_line
from orchestrator.cli.lazy_group import LazyGroup
from orchestrator.cli.options import Session, client_command, stack_argument
from orchestrator.cli.output import render
from orchestrator.cli.output.differences import details, print_plan
from orchestrator.json_types import JsonMapping

DRIFT: Final = frozenset({"MODIFIED", "MISSING", "FAILED"})
COLOURS: Final = {"MODIFIED": "yellow", "MISSING": "red", "FAILED": "red", "UNKNOWN": "dim"}


class DriftGroup(LazyGroup):
    """A group whose command `show` needs no name: `drift STACK`, `drift --all`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert `show` before a stack or an option."""
        if args and args[0] not in {*self.commands, *ctx.help_option_names}:
            args = ["show", *args]
        return super().parse_args(ctx, args)


@click.group(cls=DriftGroup, entries={})
def drift() -> None:
    """Show or accept differences from the desired state.

    `orchestrator drift STACK` and `orchestrator drift --all` are `orchestrator drift show`.
    """


@drift.command()
@click.argument("name", metavar="[STACK]", required=False)
@click.option("--all", "all_", is_flag=True, help="All stacks of the project.")
@client_command
def show(session: Session, *, name: str | None, all_: bool) -> None:
    """Show the resources that differ from the state in which they were built.

    Shows the verdicts of the last observation, with nested stacks, and observes nothing itself. The exit code
    is 2 if a resource is changed, missing or failed.
    """
    if (name is None) != all_:
        raise Failure("Name a stack, or use --all.")
    stack = None if name is None else session.client.stacks.find(name)
    found = session.client.observations.deviations(stack)
    rows = found["observations"]
    if session.as_json:
        session.document(found)
    else:
        _print(session, found, where=f"stack {stack.name}" if stack else "the project")
    if any(row["verdict"] in DRIFT for row in rows):
        sys.exit(Exit.CHANGES)


@drift.command()
@click.argument("name", metavar="[STACK]", required=False)
@click.option("--all", "all_", is_flag=True, help="All stacks of the project.")
@click.option(
    "--limit", type=click.IntRange(1), default=50, show_default=True, metavar="COUNT",
    help="Maximum number of verdicts.",
)  # fmt: skip
@client_command
def history(session: Session, *, name: str | None, all_: bool, limit: int) -> None:
    """Show differences that have ended, with nested stacks, the latest first."""
    if (name is None) != all_:
        raise Failure("Name a stack, or use --all.")
    stack = None if name is None else session.client.stacks.find(name)
    rows = session.client.observations.history(stack, limit)
    if session.as_json:
        session.document({"history": rows})
        return
    shown = [
        (
            row["stack_name"],
            row["resource_name"],
            row["resource_type"],
            row["verdict"],
            render.time(row["first_seen"]),
            render.time(row["ended"]),
            details(row),
        )
        for row in rows
    ]
    if shown:
        columns = ("STACK", "RESOURCE", "TYPE", "VERDICT", "FIRST SEEN", "ENDED", "DETAILS")
        render.table(session.out(), columns, shown)
    else:
        session.say(f"No difference of {f'stack {stack.name}' if stack else 'the project'} has ended.")


@drift.command()
@stack_argument
@click.argument("path")
@click.option("--reason", required=True, help="Reason, shown with the accepted differences.")
@click.option("--until", metavar="TIME", help="End of the acceptance.  [default: permanent]")
@click.option("--all", "everything", is_flag=True, help="Allow a PATH that accepts every difference.")
@client_command
def accept(
    session: Session, *, name: str, path: str, reason: str, until: str | None, everything: bool
) -> None:
    """Accept the differences at PATH in STACK: they are not reported as drift, and not repaired.

    PATH names properties: web.properties.metadata.*, in nested stacks group.0.server.properties.name. `*`
    stands for any text.
    """
    body = {
        "kind": "accept",
        "stack": name,
        "path": path,
        "reason": reason,
        **({"until": until} if until else {}),
        **({"all": True} if everything else {}),
    }
    accepted = session.client.observation_policies.create(body)
    if session.as_json:
        session.document(accepted)
    else:
        session.say(f"Differences at {path} in {name} are accepted.")


@drift.command()
@stack_argument
@click.option("--repair", is_flag=True, help="Show what a repair would do.")
@click.option(
    "--adopt", is_flag=True, help="Show the change of the template that accepts the observed state."
)
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="With --adopt: write the changed template to this file.",
)  # fmt: skip
@click.option(
    "--apply",
    is_flag=True,
    help="With --adopt: update the stack with the changed template and its stored files.",
)
@client_command
def plan(session: Session, *, name: str, repair: bool, adopt: bool, output: Path | None, apply: bool) -> None:
    """Observe STACK now, and show how its differences end; without --apply nothing is changed.

    With --repair the objects follow the template, as with `orchestrator converge`. With --adopt the template
    follows the objects: the result is a JSON Patch (RFC 6902). An update with the changed template leaves the
    stack in sync and touches no object. The exit code is 2 if there is anything to do.
    """
    if repair == adopt:
        raise click.UsageError("Give one of --repair and --adopt.")
    if (output is not None or apply) and not adopt:
        raise click.UsageError("--output and --apply have no effect without --adopt")
    stack = session.client.stacks.find(name)
    if repair:
        found = session.client.stacks.converge(stack, plan=True)
        if session.as_json:
            session.document(found)
        else:
            print_plan(session, found)
        if any(one["action"] for one in found["resources"]):
            sys.exit(Exit.CHANGES)
        return
    adoption = session.client.stacks.adoption(stack)["adoption"]
    if output is not None:
        output.write_text(render.as_text(adoption["template"]) + "\n", encoding="utf-8")
    session.document(adoption if session.as_json else adoption["patch"])
    for left in adoption["left"]:
        click.echo(f"Not adopted: {clean(left['path'])}: {one_line(left['reason'])}", err=True)
    if apply and adoption["patch"]:
        request = {"template": adoption["template"], **({} if adoption["recorded"] else {"converge": True})}
        session.client.stacks.update(stack, request, existing=True)
        session.say(f"Update of stack {stack.name} ({stack.id}) started.")
    elif adoption["patch"] or adoption["left"]:
        sys.exit(Exit.CHANGES)


def _print(session: Session, found: JsonMapping, where: str) -> None:
    rows = [
        (
            row["stack_name"],
            row["resource_name"],
            row["resource_type"],
            row["verdict"],
            render.time(row["since"]),
            details(row),
        )
        for row in found["observations"]
    ]
    if rows:
        render.table(session.out(), ("STACK", "RESOURCE", "TYPE", "VERDICT", "SINCE", "DETAILS"), rows)
    else:
        session.say(f"No resource of {where} is known to deviate.")
    for service in found["services"]:
        if service["unknown_since"]:
            since, reason = render.time(service["unknown_since"]), one_line(service["unknown_reason"])
            session.say(f"{service['service']} could not be observed since {since}: {reason}")
        if service["loss"]:
            loss = service["loss"]
            session.say(
                f"{service['service']} has lost {loss['lost']} of {loss['of']} objects since "
                f"{render.time(loss['since'])}: nothing is repaired."
            )
    if not found["services"]:
        session.say("Nothing was observed yet.")
