"""`orchestrator stack revisions`, `revision`, `rollback` and `failures`: what became of a stack."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import click
from rich.text import Text

from orchestrator.cli.exit_codes import Failure
from orchestrator.cli.options import Session, client_command, wait_options
from orchestrator.cli.output import render
from orchestrator.cli.watch.wait import conclude, watch

STYLES = {"complete": "green", "failed": "red", "cancelled": "yellow", "superseded": "dim"}
LIMIT = click.option("--limit", type=click.IntRange(1), help="At most so many.")


@click.command()
@click.argument("name")
@LIMIT
@client_command
def revisions(session: Session, *, name: str, limit: int | None) -> None:
    """List what the stack NAME was asked to be and what became of it, the newest first."""
    listed = list(session.client.revisions(session.client.find(name), limit))
    if session.as_json:
        session.document({"revisions": listed})
        return
    rows = (
        (
            one["number"],
            _action(one),
            outcome(one),
            render.date(one["creation_time"]),
            _took(one),
            _by(one),
            _marks(one),
        )
        for one in listed
    )
    render.table(session.out(), ("NUMBER", "ACTION", "OUTCOME", "BEGUN", "TOOK", "BY", ""), rows)


@click.command()
@click.argument("name")
@click.argument("number", type=int)
@client_command
def revision(session: Session, *, name: str, number: int) -> None:
    """Show one revision of the stack NAME: what it did, how it ended, its parameters."""
    found = session.client.revision(session.client.find(name), number)
    if session.as_json:
        session.document(found)
        return
    did = found["resources"]
    counts = (
        ", ".join(f"{count} {word}" for word, count in did.items() if count) if did else "no longer known"
    )
    render.facts(
        session.out(),
        (
            ("number", found["number"]),
            ("action", _action(found)),
            ("outcome", outcome(found)),
            ("reason", found["reason"]),
            ("resources", counts or "none touched"),
            ("failures", found["failures"] or None),
            ("by", _by(found)),
            ("begun", render.date(found["creation_time"])),
            ("took", _took(found)),
            ("files", ", ".join(found["files"])),
            ("is", _marks(found)),
        ),
    )
    given = {key: value for key, value in found["parameters"].items() if ":" not in key}
    if given:
        session.say("\nParameters")
        render.outputs(
            session.out(), [{"output_key": key, "output_value": value} for key, value in given.items()]
        )


@click.command()
@click.argument("name")
@click.argument("number", type=int, required=False)
@wait_options
@client_command
def rollback(
    session: Session, *, name: str, number: int | None, wait: bool, wait_timeout: float | None
) -> None:
    """Bring the stack NAME back to its revision NUMBER, over whatever it is doing.

    Without NUMBER it is the last one that was complete and is not what the stack has now. Exits 3 when the
    rollback fails, 4 when --wait-timeout runs out first.
    """
    found = session.client.find(name)
    if number is None:
        number = _before(session.client.revisions(found), name)
    newest = session.client.newest_event(found) if wait else None
    session.client.rollback(found, number)
    if wait:
        conclude(session, found, watch(session, found, "ROLLBACK", newest, wait_timeout))
    elif session.as_json:
        session.document(session.client.show(found, outputs=False))
    elif session.quiet:
        click.echo(found.id)
    else:
        session.say(f"Stack {found.name} ({found.id}) goes back to revision {number}.")


@click.command()
@click.argument("name")
@click.option("--revision", type=int, metavar="NUMBER", help="Of this one; else of what failed last.")
@LIMIT
@client_command
def failures(session: Session, *, name: str, revision: int | None, limit: int | None) -> None:
    """List every cause why the stack NAME failed, in the order they happened."""
    found = session.client.find(name)
    listed = session.client.failures(found, revision, limit)
    if session.as_json:
        session.document({"failures": list(listed)})
        return
    rows = [(render.clock(one["failure_time"]), one["resource_name"], one["reason"]) for one in listed]
    if rows or session.quiet:
        render.table(session.out(), ("TIME", "RESOURCE", "REASON"), rows)
    else:
        session.say(f"No resource of stack {found.name} has failed.")


def outcome(one: Mapping[str, Any]) -> Text:
    """Return how a revision ended, in the colour of that."""
    word = one["outcome"]
    if word is None:
        return Text("in progress" if one["is_desired"] else "", style="yellow")
    return Text(word, style=STYLES.get(word, ""))


def _before(listed: Iterable[Mapping[str, Any]], name: str) -> int:
    """Return the number of the last complete revision with another template than the desired one."""
    now: int | None = None
    for one in listed:
        same_as = one["copy_of"] or one["number"]
        if one["is_desired"]:
            now = same_as
        elif one["outcome"] == "complete" and same_as != now:
            return int(one["number"])
    raise Failure(f"stack {name} was never complete as anything else than it is: name a revision")


def _action(one: Mapping[str, Any]) -> str:
    return f"{one['action']} to {one['copy_of']}" if one["copy_of"] else str(one["action"])


def _took(one: Mapping[str, Any]) -> str:
    seconds = one["seconds"]
    if seconds is None:
        return ""
    minutes, rest = divmod(seconds, 60)
    return f"{minutes:.0f}m {rest:.0f}s" if minutes else f"{rest:.1f}s"


def _by(one: Mapping[str, Any]) -> str:
    return str(one["created_by"] or "")


def _marks(one: Mapping[str, Any]) -> str:
    marks = {"is_desired": "desired", "is_last_good": "last good"}
    return ", ".join(word for key, word in marks.items() if one[key])
