"""`orchestrator stack snapshot …`: keep a stack as it is, and bring it back to that."""

from __future__ import annotations

import click

from orchestrator.cli.exit_codes import ExitOneOnUsageGroup
from orchestrator.cli.options import Session, client_command, wait_options
from orchestrator.cli.output import render
from orchestrator.cli.watch.wait import conclude, watch


@click.group(cls=ExitOneOnUsageGroup)
def snapshot() -> None:
    """Keep a stack as it is, and bring it back to that."""


@snapshot.command()
@click.argument("stack")
@click.option("--name", help="What to call it.")
@wait_options
@client_command
def create(session: Session, *, stack: str, name: str | None, wait: bool, wait_timeout: float | None) -> None:
    """Take a snapshot of STACK, which must be at rest.

    Exits 3 when that fails, 4 when --wait-timeout runs out first.
    """
    found = session.client.find(stack)
    newest = session.client.newest_event(found) if wait else None
    made = session.client.take_snapshot(found, name)
    if wait:
        conclude(session, found, watch(session, found, "SNAPSHOT", newest, wait_timeout))
    elif session.as_json:
        session.document(made)
    elif session.quiet:
        click.echo(made["id"])
    else:
        session.say(f"Snapshot {made['id']} of stack {found.name} is being taken.")


@snapshot.command("list")
@click.argument("stack")
@client_command
def list_snapshots(session: Session, *, stack: str) -> None:
    """List the snapshots of STACK, the oldest first."""
    found = session.client.find(stack)
    listed = session.client.snapshots(found)
    if session.as_json:
        session.document({"snapshots": listed})
        return
    rows = [(one["id"], one["name"] or "", _status(one), render.date(one["creation_time"])) for one in listed]
    if rows or session.quiet:
        render.table(session.out(), ("ID", "NAME", "STATUS", "TAKEN"), rows)
    else:
        session.say(f"Stack {found.name} has no snapshots.")


@snapshot.command()
@click.argument("stack")
@click.argument("snapshot_id", metavar="SNAPSHOT")
@client_command
def show(session: Session, *, stack: str, snapshot_id: str) -> None:
    """Show the SNAPSHOT of STACK: how it is, and what it holds."""
    one = session.client.snapshot(session.client.find(stack), snapshot_id)
    if session.as_json:
        session.document(one)
        return
    render.facts(
        session.out(),
        (
            ("id", one["id"]),
            ("name", one["name"]),
            ("status", _status(one)),
            ("reason", one["status_reason"]),
            ("taken", render.date(one["creation_time"])),
        ),
    )
    if resources := (one.get("data") or {}).get("resources"):
        session.say("\nResources")
        rows = ((each["name"], each["type"], each["resource_id"] or "") for each in resources.values())
        render.table(session.out(), ("NAME", "TYPE", "PHYSICAL ID"), rows)


@snapshot.command()
@click.argument("stack")
@click.argument("snapshot_id", metavar="SNAPSHOT")
@client_command
def delete(session: Session, *, stack: str, snapshot_id: str) -> None:
    """Remove the SNAPSHOT of STACK, and the copies that belong to it."""
    session.client.delete_snapshot(session.client.find(stack), snapshot_id)
    if session.as_json:
        session.document({"id": snapshot_id})
    else:
        session.say(f"Snapshot {snapshot_id} is being removed.")


@snapshot.command()
@click.argument("stack")
@click.argument("snapshot_id", metavar="SNAPSHOT")
@wait_options
@client_command
def restore(
    session: Session, *, stack: str, snapshot_id: str, wait: bool, wait_timeout: float | None
) -> None:
    """Bring STACK back to the SNAPSHOT.

    Exits 3 when that fails, 4 when --wait-timeout runs out first.
    """
    found = session.client.find(stack)
    newest = session.client.newest_event(found) if wait else None
    session.client.restore(found, snapshot_id)
    if wait:
        conclude(session, found, watch(session, found, "RESTORE", newest, wait_timeout))
    elif session.as_json:
        session.document(session.client.show(found, outputs=False))
    else:
        session.say(f"Stack {found.name} is being brought back to snapshot {snapshot_id}.")


def _status(one: dict[str, str]) -> object:
    return render.status(f"{one['action']}_{one['status']}")
