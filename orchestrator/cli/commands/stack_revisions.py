"""`orchestrator stack revisions`, `revision`, `rollback` and `failures`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import click
from rich.text import Text

from orchestrator.cli.exit_codes import Failure
from orchestrator.cli.options import Session, Wait, client_command, stack_argument, wait_options
from orchestrator.cli.output import render
from orchestrator.cli.output.event_line import duration
from orchestrator.cli.watch.wait import finish, newest_event
from orchestrator.json_types import JsonMapping

STYLES: Final = {"complete": "green", "failed": "red", "cancelled": "yellow", "superseded": "dim"}


@click.command()
@stack_argument
@click.option("--limit", type=click.IntRange(1), help="Maximum number of revisions.")
@client_command
def revisions(session: Session, *, name: str, limit: int | None) -> None:
    """List the revisions of a stack, newest first."""
    rows_ = list(session.client.revisions.list_all(session.client.stacks.find(name), limit))
    if session.as_json:
        session.document({"revisions": rows_})
        return
    rows = (
        (
            revision["number"],
            _action(revision),
            outcome(revision),
            render.time(revision["creation_time"]),
            _took(revision),
            revision["created_by"] or "",
            _marks(revision),
        )
        for revision in rows_
    )
    render.table(session.out(), ("NUMBER", "ACTION", "OUTCOME", "STARTED", "DURATION", "BY", ""), rows)


@click.command()
@stack_argument
@click.argument("number", type=int)
@client_command
def revision(session: Session, *, name: str, number: int) -> None:
    """Show one revision of a stack.

    Shows the action, its outcome, the number of changed resources, and the parameters.
    """
    revision_ = session.client.revisions.show(session.client.stacks.find(name), number)
    if session.as_json:
        session.document(revision_)
        return
    changed = revision_["resources"]
    counts = ", ".join(f"{count} {change}" for change, count in (changed or {}).items() if count) or "none"
    render.facts(
        session.out(),
        (
            ("number", revision_["number"]),
            ("action", _action(revision_)),
            ("outcome", outcome(revision_)),
            ("reason", revision_["reason"]),
            ("resources", counts if changed is not None else "no longer known"),
            ("failures", revision_["failures"] or None),
            ("by", revision_["created_by"]),
            ("started", render.time(revision_["creation_time"])),
            ("duration", _took(revision_)),
            ("files", ", ".join(revision_["files"])),
            ("state", _marks(revision_)),
        ),
    )
    parameters = {key: value for key, value in revision_["parameters"].items() if ":" not in key}
    if parameters:
        session.say("\nParameters")
        pairs = [{"output_key": key, "output_value": value} for key, value in parameters.items()]
        render.outputs(session.out(), pairs)


@click.command()
@stack_argument
@click.argument("number", type=int, required=False)
@wait_options
@client_command
def rollback(session: Session, *, name: str, number: int | None, wait: Wait) -> None:
    """Roll a stack back to an earlier revision.

    NUMBER defaults to the last complete revision that differs from the desired revision. With --wait, the
    exit code is 3 if the rollback failed, and 4 after --wait-timeout.
    """
    stack = session.client.stacks.find(name)
    if number is None:
        number = _previous(session.client.revisions.list_all(stack), name)
    newest = newest_event(session, stack, wait)
    session.client.revisions.roll_back(stack, number)
    sentence = f"Rollback of stack {stack.name} ({stack.id}) to revision {number} started."
    finish(session, stack, wait, "ROLLBACK", newest, sentence)


@click.command()
@stack_argument
@click.option(
    "--revision", type=int, metavar="NUMBER", help="Failure of this revision.  [default: the last failure]"
)
@click.option("--limit", type=click.IntRange(1), help="Maximum number of causes.")
@client_command
def failures(session: Session, *, name: str, revision: int | None, limit: int | None) -> None:
    """List the causes of a stack's failure.

    In the order in which they happened. `orchestrator failures` shows them as a tree with nested stacks.
    """
    stack = session.client.stacks.find(name)
    causes = list(session.client.diagnosis.failures(stack, revision, limit))
    if session.as_json:
        session.document({"failures": causes})
        return
    rows = [
        (render.time(failure["failure_time"]), failure["resource_name"], failure["reason"])
        for failure in causes
    ]
    if rows or session.quiet:
        render.table(session.out(), ("TIME", "RESOURCE", "REASON"), rows)
    else:
        session.say(f"No resource of stack {stack.name} has failed.")


def outcome(revision: JsonMapping) -> Text:
    """Return the outcome of a revision in its colour."""
    result = revision["outcome"]
    if result is None:
        return Text("in progress" if revision["is_desired"] else "", style="yellow")
    return Text(result, style=STYLES.get(result, ""))


def _previous(revisions_: Iterable[JsonMapping], name: str) -> int:
    """Return the number of the last complete revision that differs from the desired revision."""
    desired: int | None = None
    for revision in revisions_:
        original = revision["copy_of"] or revision["number"]
        if revision["is_desired"]:
            desired = original
        elif revision["outcome"] == "complete" and original != desired:
            return int(revision["number"])
    raise Failure(f"stack {name} has no other complete revision; give the number of a revision")


def _action(revision: JsonMapping) -> str:
    copied = revision["copy_of"]
    return f"{revision['action']} to {copied}" if copied else str(revision["action"])


def _took(revision: JsonMapping) -> str:
    seconds = revision["seconds"]
    if seconds is None:
        return ""
    return duration(seconds) if seconds >= 60 else f"{seconds:.1f}s"


def _marks(revision: JsonMapping) -> str:
    marks = {"is_desired": "desired", "is_last_good": "last good"}
    return ", ".join(label for key, label in marks.items() if revision[key])
