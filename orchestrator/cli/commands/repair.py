"""`orchestrator repair …`: repairs of faults that the observation found."""

from __future__ import annotations

import click

from orchestrator.cli.exit_codes import Failure
from orchestrator.cli.lazy_group import LazyGroup
from orchestrator.cli.options import Session, client_command
from orchestrator.cli.output import render

IDS = click.argument("ids", metavar="[ID]…", nargs=-1)
STACK = click.option("--stack", help="Only repairs of this stack.")
ALL = click.option("--all", "everything", is_flag=True, help="All pending repairs, of the stack if given.")
REASON = click.option("--reason", help="Reason, shown with the repair.")


@click.group(cls=LazyGroup, entries={})
def repair() -> None:
    """List, approve and decline repairs."""


@repair.command("list")
@STACK
@click.option("--status", help="Only repairs with this status.")
@client_command
def list_repairs(session: Session, *, stack: str | None, status: str | None) -> None:
    """List the repairs of the project, oldest first."""
    found = session.client.repairs.list_all(status, stack)
    if session.as_json:
        session.document({"repairs": found})
        return
    rows = [
        (
            item["id"], f"{item['stack_name']} {item['resource_name']}", item["verdict"],
            item["action"] or "", item["status"], item["status_reason"] or "",
        )
        for item in found
    ]  # fmt: skip
    if rows or session.quiet:
        render.table(session.out(), ("ID", "RESOURCE", "VERDICT", "ACTION", "STATUS", "REASON"), rows)
    else:
        session.say(f"Project {session.project} has no repairs.")


@repair.command()
@IDS
@STACK
@ALL
@REASON
@client_command
def approve(
    session: Session, *, ids: tuple[str, ...], stack: str | None, everything: bool, reason: str | None
) -> None:
    """Approve pending repairs.

    A repair whose effect has changed since it was read is left as it is; the exit code is 1 then.
    """
    _answer(session, "approve", ids, stack, reason, everything=everything)


@repair.command()
@IDS
@STACK
@ALL
@REASON
@client_command
def decline(
    session: Session, *, ids: tuple[str, ...], stack: str | None, everything: bool, reason: str | None
) -> None:
    """Decline pending repairs: these faults are not repaired."""
    _answer(session, "decline", ids, stack, reason, everything=everything)


def _answer(
    session: Session,
    verb: str,
    ids: tuple[str, ...],
    stack: str | None,
    reason: str | None,
    *,
    everything: bool,
) -> None:
    if bool(ids) == everything:
        raise click.UsageError("Name repairs, or give --all.")
    pending = {item["id"]: item for item in session.client.repairs.list_all("pending", stack)}
    unknown = [id_ for id_ in ids if id_ not in pending]
    if unknown:
        raise Failure(f"no pending repair: {', '.join(unknown)}")
    answered = []
    for id_ in ids or pending:
        body = {"effect": pending[id_]["effect"]} | ({"reason": reason} if reason else {})
        answered.append(session.client.repairs.answer(id_, verb, body))
    if session.as_json:
        session.document({"repairs": answered})
        return
    for item in answered:
        session.say(f"{item['resource_name']} in {item['stack_name']}: {item['action']} {item['status']}.")
