"""`orchestrator converge`: observe a stack now, show what differs, and repair it."""

from __future__ import annotations

import sys

import click

from orchestrator.cli.exit_codes import Exit
from orchestrator.cli.options import Session, Wait, client_command, stack_argument, wait_options
from orchestrator.cli.output.differences import print_plan
from orchestrator.cli.watch.wait import finish, newest_event

RESOURCE = click.option(
    "--resource",
    "resources",
    metavar="PATH",
    multiple=True,
    help="Only this resource; repeatable. In nested stacks with dots: group.0.server.",
)


@click.command()
@stack_argument
@click.option("--plan", is_flag=True, help="Only show what would be done; exit code 2 if there is anything.")
@RESOURCE
@wait_options
@client_command
def converge(session: Session, *, name: str, plan: bool, resources: tuple[str, ...], wait: Wait) -> None:
    """Observe a stack now, and repair what differs.

    The repair is an update of the stack with its present template. Missing objects are created again, also
    those that held data: see --plan first. With --wait, the exit code is 3 after a failure, and 4 after
    --wait-timeout.
    """
    if plan and wait:
        raise click.UsageError("--wait has no effect with --plan")
    stack = session.client.stacks.find(name)
    newest = newest_event(session, stack, wait)
    found = session.client.stacks.converge(stack, plan=plan, resources=resources)
    if session.as_json and not (wait and found["started"]):
        session.document(found)
    else:
        print_plan(session, found)
    if plan and any(one["action"] for one in found["resources"]):
        sys.exit(Exit.CHANGES)
    if found["started"] and wait:
        finish(session, stack, wait, "UPDATE", newest)
    elif found["started"]:
        session.say(f"Repair of stack {stack.name} ({stack.id}) started.")
