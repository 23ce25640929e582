"""`orchestrator stack snapshot …`: snapshots of a stack, and their restoration."""

from __future__ import annotations

import click

from orchestrator.cli.lazy_group import LazyGroup
from orchestrator.cli.options import Session, Wait, client_command, queue_option, stack_argument, wait_options
from orchestrator.cli.output import render
from orchestrator.cli.watch.wait import finish, newest_event


@click.group(cls=LazyGroup, entries={})
def snapshot() -> None:
    """Manage the snapshots of a stack."""


SNAPSHOT = click.argument("snapshot_id", metavar="SNAPSHOT")


@snapshot.command()
@stack_argument
@click.option("--name", "title", help="Name of the snapshot.")
@queue_option
@wait_options
@client_command
def create(session: Session, *, name: str, title: str | None, queue: bool, wait: Wait) -> None:
    """Take a snapshot of a stack.

    No action may be in progress unless --queue is given. With --wait, the exit code is 3 after a failure, and
    4 after --wait-timeout.
    """
    stack = session.client.stacks.find(name)
    newest = newest_event(session, stack, wait)
    made = session.client.snapshots.create(stack, title, queue=queue)
    if wait:
        finish(session, stack, wait, "SNAPSHOT", newest)
    elif session.as_json:
        session.document(made)
    elif session.quiet:
        click.echo(made["id"])
    else:
        session.say(f"Snapshot {made['id']} of stack {stack.name} started.")


@snapshot.command("list")
@stack_argument
@client_command
def list_snapshots(session: Session, *, name: str) -> None:
    """List the snapshots of a stack, oldest first."""
    stack = session.client.stacks.find(name)
    snapshots = session.client.snapshots.list_all(stack)
    if session.as_json:
        session.document({"snapshots": snapshots})
        return
    rows = [
        (item["id"], item["name"] or "", _status(item), render.time(item["creation_time"]))
        for item in snapshots
    ]
    if rows or session.quiet:
        render.table(session.out(), ("ID", "NAME", "STATUS", "CREATED"), rows)
    else:
        session.say(f"Stack {stack.name} has no snapshots.")


@snapshot.command()
@stack_argument
@SNAPSHOT
@client_command
def show(session: Session, *, name: str, snapshot_id: str) -> None:
    """Show status and resources of a snapshot."""
    body = session.client.snapshots.show(session.client.stacks.find(name), snapshot_id)
    if session.as_json:
        session.document(body)
        return
    render.facts(
        session.out(),
        (
            ("id", body["id"]),
            ("name", body["name"]),
            ("status", _status(body)),
            ("reason", body["status_reason"]),
            ("created", render.time(body["creation_time"])),
        ),
    )
    if resources := (body.get("data") or {}).get("resources"):
        session.say("\nResources")
        rows = ((each["name"], each["type"], each["resource_id"] or "") for each in resources.values())
        render.table(session.out(), ("NAME", "TYPE", "PHYSICAL ID"), rows)


@snapshot.command()
@stack_argument
@SNAPSHOT
@client_command
def delete(session: Session, *, name: str, snapshot_id: str) -> None:
    """Delete a snapshot with its resource snapshots."""
    session.client.snapshots.delete(session.client.stacks.find(name), snapshot_id)
    if session.as_json:
        session.document({"id": snapshot_id})
    else:
        session.say(f"Deletion of snapshot {snapshot_id} started.")


@snapshot.command()
@stack_argument
@SNAPSHOT
@wait_options
@client_command
def restore(session: Session, *, name: str, snapshot_id: str, wait: Wait) -> None:
    """Restore a stack from a snapshot.

    With --wait, the exit code is 3 after a failure, and 4 after --wait-timeout.
    """
    stack = session.client.stacks.find(name)
    newest = newest_event(session, stack, wait)
    session.client.snapshots.restore(stack, snapshot_id)
    finish(
        session,
        stack,
        wait,
        "RESTORE",
        newest,
        f"Restoration of stack {stack.name} from {snapshot_id} started.",
    )


def _status(found: dict[str, str]) -> object:
    return render.status(f"{found['action']}_{found['status']}")
