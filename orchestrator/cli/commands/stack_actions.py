"""`orchestrator stack check|suspend|resume|cancel`: what can be asked besides another template."""

from __future__ import annotations

import click

from orchestrator.cli.options import Session, client_command, wait_options
from orchestrator.cli.watch.wait import conclude, watch


@click.command()
@click.argument("name")
@wait_options
@client_command
def check(session: Session, *, name: str, wait: bool, wait_timeout: float | None) -> None:
    """Look at everything the stack NAME has; what is gone or broken is replaced by the next update.

    Exits 3 when something is wrong, 4 when --wait-timeout runs out first.
    """
    _act(session, name, "check", "CHECK", "is being checked", wait, wait_timeout)


@click.command()
@click.argument("name")
@wait_options
@client_command
def suspend(session: Session, *, name: str, wait: bool, wait_timeout: float | None) -> None:
    """Pause everything in the stack NAME that can be paused; it takes no update until it is resumed.

    Exits 3 when that fails, 4 when --wait-timeout runs out first.
    """
    _act(session, name, "suspend", "SUSPEND", "is being suspended", wait, wait_timeout)


@click.command()
@click.argument("name")
@wait_options
@client_command
def resume(session: Session, *, name: str, wait: bool, wait_timeout: float | None) -> None:
    """Resume what `suspend` paused in the stack NAME.

    Exits 3 when that fails, 4 when --wait-timeout runs out first.
    """
    _act(session, name, "resume", "RESUME", "is being resumed", wait, wait_timeout)


@click.command()
@click.argument("name")
@click.option("--no-rollback", is_flag=True, help="Stop where it is; what runs finishes.")
@wait_options
@client_command
def cancel(session: Session, *, name: str, no_rollback: bool, wait: bool, wait_timeout: float | None) -> None:
    """Cancel the update of the stack NAME and go back to the last good revision.

    With --no-rollback a create can be cancelled too. Exits 3 when going back fails, or when there was none; 4
    when --wait-timeout runs out first.
    """
    if no_rollback:
        action, expected, said = "cancel_without_rollback", "UPDATE", "starts nothing more"
    else:
        action, expected, said = "cancel_update", "ROLLBACK", "goes back to its last good revision"
    _act(session, name, action, expected, said, wait, wait_timeout, begins=not no_rollback)


def _act(
    session: Session,
    name: str,
    action: str,
    expected: str,
    said: str,
    wait: bool,
    wait_timeout: float | None,
    *,
    begins: bool = True,
) -> None:
    """Ask for an action; `expected` is the action that the stack then shows, and `begins` unless it is under
    way.
    """
    found = session.client.find(name)
    newest = session.client.newest_event(found) if wait else None
    session.client.act(found, action)
    if wait:
        conclude(session, found, watch(session, found, expected, newest, wait_timeout, begins=begins))
    elif session.as_json:
        session.document(session.client.show(found, outputs=False))
    elif session.quiet:
        click.echo(found.id)
    else:
        session.say(f"Stack {found.name} ({found.id}) {said}.")
