"""`orchestrator webhook …`: who is told of a project's events."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from orchestrator.cli.exit_codes import ExitOneOnUsageGroup, Failure
from orchestrator.cli.options import FILE, Session, client_command
from orchestrator.cli.output import render

AFTER = click.option(
    "--after", metavar="SEQUENCE", help="From this event on; 0.0: from the first, now: none so far."
)


@click.group(cls=ExitOneOnUsageGroup)
def webhook() -> None:
    """Tell addresses of what happens, signed, in order, until they have taken it."""


@webhook.command()
@click.argument("address", metavar="URL")
@click.option("--stack", help="Of this stack only.")
@click.option("--nested", type=click.IntRange(0), default=0, help="Of so many levels of nested stacks too.")
@click.option("--stacks-only", is_flag=True, help="Only what stacks tell of themselves.")
@click.option(
    "--secret-file", type=FILE, help="What signs; or ORCHESTRATOR_WEBHOOK_SECRET. Else one is made."
)
@AFTER
@client_command
def create(
    session: Session,
    *,
    address: str,
    stack: str | None,
    nested: int,
    stacks_only: bool,
    secret_file: Path | None,
    after: str | None,
) -> None:
    """Have URL told of events. The secret that signs is shown this once."""
    secret = secret_file.read_text().strip() if secret_file else os.environ.get("ORCHESTRATOR_WEBHOOK_SECRET")
    asked = {
        "url": address,
        "stack": stack,
        "nested_depth": nested or None,
        "events": "stack" if stacks_only else None,
        "secret": secret or None,
        "after": after,
    }
    made = session.client.make_webhook({key: value for key, value in asked.items() if value is not None})
    if session.as_json:
        session.document(made)
    elif session.quiet:
        click.echo(made["id"])
    else:
        _show(session, made)


@webhook.command("list")
@click.option("--dead", is_flag=True, help="Only those that were given up.")
@client_command
def list_webhooks(session: Session, *, dead: bool) -> None:
    """List the project's webhooks, the oldest first."""
    found = session.client.webhooks({"state": "dead"} if dead else {})
    if session.as_json:
        session.document({"webhooks": found})
        return
    rows = [
        (
            one["id"],
            one["state"],
            one["stack_name"] or "",
            one["delivered"],
            one["url"],
            one["last_error"] or "",
        )
        for one in found
    ]
    if rows or session.quiet:
        render.table(session.out(), ("ID", "STATE", "STACK", "DELIVERED", "URL", "LAST ERROR"), rows)
    else:
        session.say(f"Project {session.client.project} has no such webhooks.")


@webhook.command()
@click.argument("id_", metavar="ID")
@client_command
def show(session: Session, *, id_: str) -> None:
    """Show the webhook ID: where it stands, and what went wrong the last time."""
    found = session.client.webhook(id_)
    if session.as_json:
        session.document(found)
    else:
        _show(session, found)


@webhook.command()
@click.argument("id_", metavar="ID")
@client_command
def delete(session: Session, *, id_: str) -> None:
    """Remove the webhook ID."""
    session.client.delete_webhook(id_)
    session.say(f"Webhook {id_} is gone.")


@webhook.command()
@click.argument("id_", metavar="ID")
@client_command
def test(session: Session, *, id_: str) -> None:
    """Deliver a message without events to the webhook ID now; exits 1 when it is not taken."""
    told = session.client.test_webhook(id_)
    if not told["delivered"]:
        raise Failure(f"webhook {id_} was not told: {told['error']}", facts={"test": told})
    if session.as_json:
        session.document(told)
    else:
        session.say(f"Webhook {id_} answered {told['status']}.")


@webhook.command()
@click.argument("id_", metavar="ID")
@AFTER
@client_command
def rearm(session: Session, *, id_: str, after: str | None) -> None:
    """Let the webhook ID, given up or not, try again now: from where it stands unless --after says."""
    found = session.client.rearm_webhook(id_, after)
    if session.as_json:
        session.document(found)
    else:
        session.say(f"Webhook {id_} tries again from {found['sequence']}.")


def _show(session: Session, found: Mapping[str, Any]) -> None:
    keys = (
        "id", "url", "secret", "state", "stack_name", "nested_depth", "events", "sequence", "delivered",
        "tries", "last_error",
    )  # fmt: skip
    pairs = [(key.replace("_", " "), found[key]) for key in keys]
    for key in ("delivered_at", "failing_since", "next_attempt_at", "creation_time"):
        pairs.append((key.replace("_", " "), render.date(found[key])))
    render.facts(session.out(), pairs)
