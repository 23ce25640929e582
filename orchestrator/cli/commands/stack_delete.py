"""`orchestrator stack delete`."""

from __future__ import annotations

import sys

import click

from orchestrator.cli.argument_values import complete_stacks
from orchestrator.cli.client.connection import StackId
from orchestrator.cli.exit_codes import Exit, Failure
from orchestrator.cli.options import Session, Wait, client_command, wait_options, yes_option
from orchestrator.cli.watch.follow import Event
from orchestrator.cli.watch.wait import failed, newest_event, watch


@click.command()
@click.argument("names", metavar="STACK...", nargs=-1, required=True, shell_complete=complete_stacks)
@yes_option
@wait_options
@client_command
def delete(session: Session, *, names: tuple[str, ...], yes: bool, wait: Wait) -> None:
    """Delete stacks with all their resources.

    Asks for confirmation on a terminal. With --wait, --wait-timeout applies to each stack.
    """
    if not yes and sys.stdin.isatty():
        resources = "all their resources" if len(names) > 1 else "all its resources"
        click.confirm(f"Delete {', '.join(names)} and {resources}?", abort=True)
    started: list[tuple[StackId, Event | None]] = []
    failures: list[Failure] = []
    for name in names:
        try:
            stack = session.client.stacks.find(name)
            newest = newest_event(session, stack, wait)
            session.client.stacks.delete(stack)
            started.append((stack, newest))
            session.say(f"Deletion of stack {stack.name} started.")
        except Failure as failure:
            failures.append(failure)
    deleted: list[dict[str, str]] = []
    for stack, newest in started:
        status = "DELETE_IN_PROGRESS"
        if wait:
            status = _wait(session, stack, newest, wait, failures, several=len(started) > 1)
        deleted.append({"stack_name": stack.name, "id": stack.id, "stack_status": status})
    if failures:
        raise _combined(failures)
    if session.as_json:
        session.document({"stacks": deleted})
    elif wait:
        session.say(f"Deleted: {', '.join(stack['stack_name'] for stack in deleted)}.")


def _wait(
    session: Session,
    stack: StackId,
    newest: Event | None,
    wait: Wait,
    failures: list[Failure],
    *,
    several: bool,
) -> str:
    """Wait for the end of a deletion; add a failure to `failures`, and return the status."""
    try:
        end = watch(session, stack, "DELETE", newest, wait.timeout_seconds, several=several)
    except Failure as failure:
        failures.append(failure)
        return "DELETE_IN_PROGRESS"
    if end.failed:
        failures.append(failed(stack, end))
    return end.status


def _combined(failures: list[Failure]) -> Failure:
    """Return a failure with all messages and the highest exit code."""
    if len(failures) == 1:
        return failures[0]
    return Failure(
        f"{len(failures)} stacks could not be deleted",
        code=Exit(max(failure.exit_code for failure in failures)),
        details=[text for failure in failures for text in (f"  {failure.message}", *failure.details)],
        facts={"failures": [failure.document()["error"] for failure in failures]},
    )
