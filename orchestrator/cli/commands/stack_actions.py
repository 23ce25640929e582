"""`orchestrator stack check`, `suspend`, `resume` and `cancel`."""

from __future__ import annotations

import click

from orchestrator.cli.options import Session, Wait, client_command, queue_option, stack_argument, wait_options
from orchestrator.cli.watch.wait import finish, newest_event


@click.command()
@stack_argument
@wait_options
@client_command
def check(session: Session, *, name: str, wait: Wait) -> None:
    """Check all resources of a stack at their providers.

    The next update replaces resources that no longer exist or are in error. During another operation, or if
    the stack has not reached its desired revision, the resources are only observed: see `resource show`. With
    --wait, the exit code is 3 if there are such resources, and 4 after --wait-timeout.
    """
    _start(session, name, wait, "check", "CHECK", "Check")


@click.command()
@stack_argument
@queue_option
@wait_options
@client_command
def suspend(session: Session, *, name: str, queue: bool, wait: Wait) -> None:
    """Suspend the resources of a stack.

    A suspended stack cannot be updated. With --wait, the exit code is 3 after a failure, and 4 after
    --wait-timeout.
    """
    _start(session, name, wait, "suspend", "SUSPEND", "Suspension", queue=queue)


@click.command()
@stack_argument
@queue_option
@wait_options
@client_command
def resume(session: Session, *, name: str, queue: bool, wait: Wait) -> None:
    """Resume the resources of a suspended stack.

    With --wait, the exit code is 3 after a failure, and 4 after --wait-timeout.
    """
    _start(session, name, wait, "resume", "RESUME", "Resumption", queue=queue)


@click.command()
@stack_argument
@click.option(
    "--no-rollback", is_flag=True, help="Start no further steps and keep the result; also for a create."
)
@wait_options
@client_command
def cancel(session: Session, *, name: str, no_rollback: bool, wait: Wait) -> None:
    """Cancel the update of a stack and roll it back.

    The rollback restores the last good revision. With --wait, the exit code is 3 if the rollback failed, or
    with
    --no-rollback; 4 after --wait-timeout.
    """
    if no_rollback:
        _start(session, name, wait, "cancel_without_rollback", "UPDATE", "Cancellation", begins=False)
    else:
        _start(session, name, wait, "cancel_update", "ROLLBACK", "Rollback")


def _start(
    session: Session,
    name: str,
    wait: Wait,
    action: str,
    shown: str,
    noun: str,
    *,
    begins: bool = True,
    queue: bool = False,
) -> None:
    """Start an action; `shown` is the action in the status of the stack, see `watch` for `begins`."""
    stack = session.client.stacks.find(name)
    newest = newest_event(session, stack, wait)
    session.client.stacks.start_action(stack, action, queue=queue)
    sentence = f"{noun} of stack {stack.name} ({stack.id}) {'requested' if queue else 'started'}."
    finish(session, stack, wait, shown, newest, sentence, begins=begins)
