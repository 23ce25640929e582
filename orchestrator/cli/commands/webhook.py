"""`orchestrator webhook …`: signed HTTP requests for the events of a project."""

from __future__ import annotations

import os
from pathlib import Path

import click

from orchestrator.cli.exit_codes import Failure
from orchestrator.cli.lazy_group import LazyGroup
from orchestrator.cli.options import FILE, Session, client_command
from orchestrator.cli.output import render
from orchestrator.cli.template_files.load import read_text
from orchestrator.json_types import JsonMapping

AFTER = click.option(
    "--after",
    metavar="SEQUENCE",
    help="Deliver events after this sequence; 0.0: all events, now: only new events.",
)


@click.group(cls=LazyGroup, entries={})
def webhook() -> None:
    """Manage webhooks: signed HTTP requests for events."""


@webhook.command()
@click.argument("address", metavar="URL")
@click.option("--stack", help="Deliver only events of this stack.")
@click.option(
    "--nested",
    type=click.IntRange(0),
    default=0,
    metavar="LEVELS",
    help="Include LEVELS levels of nested stacks.",
)
@click.option("--stacks-only", is_flag=True, help="Deliver only events of stacks, not of resources.")
@click.option(
    "--secret-file",
    type=FILE,
    help="File with the signing secret.  [env: ORCHESTRATOR_WEBHOOK_SECRET; default: a new secret]",
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
    """Create a webhook that delivers events to URL.

    The signing secret is printed only this once.
    """
    from_environment = os.environ.get("ORCHESTRATOR_WEBHOOK_SECRET")
    secret = read_text(secret_file, "secret").strip() if secret_file else from_environment
    body = {
        "url": address,
        "stack": stack,
        "nested_depth": nested or None,
        "events": "stack" if stacks_only else None,
        "secret": secret or None,
        "after": after,
    }
    made = session.client.webhooks.create({key: value for key, value in body.items() if value is not None})
    if session.as_json:
        session.document(made)
    elif session.quiet:
        click.echo(made["id"])
    else:
        _show(session, made)


@webhook.command("list")
@click.option("--dead", is_flag=True, help="Only webhooks whose deliveries were given up.")
@client_command
def list_webhooks(session: Session, *, dead: bool) -> None:
    """List the webhooks of the project, oldest first."""
    webhooks = session.client.webhooks.list_all({"state": "dead"} if dead else {})
    if session.as_json:
        session.document({"webhooks": webhooks})
        return
    rows = [
        (
            item["id"],
            item["state"],
            item["stack_name"] or "",
            item["delivered"],
            item["url"],
            item["last_error"] or "",
        )
        for item in webhooks
    ]
    if rows or session.quiet:
        render.table(session.out(), ("ID", "STATE", "STACK", "DELIVERED", "URL", "LAST ERROR"), rows)
    else:
        session.say(f"Project {session.project} has no {'dead ' if dead else ''}webhooks.")


@webhook.command()
@click.argument("id_", metavar="ID")
@client_command
def show(session: Session, *, id_: str) -> None:
    """Show the state and the last error of a webhook."""
    body = session.client.webhooks.show(id_)
    if session.as_json:
        session.document(body)
    else:
        _show(session, body)


@webhook.command()
@click.argument("id_", metavar="ID")
@client_command
def delete(session: Session, *, id_: str) -> None:
    """Delete a webhook."""
    session.client.webhooks.delete(id_)
    if session.as_json:
        session.document({"id": id_})
    session.say(f"Webhook {id_} deleted.")


@webhook.command()
@click.argument("id_", metavar="ID")
@client_command
def test(session: Session, *, id_: str) -> None:
    """Deliver a test message without events.

    The exit code is 1 if the delivery failed.
    """
    result = session.client.webhooks.test(id_)
    if not result["delivered"]:
        raise Failure(f"the delivery to webhook {id_} failed: {result['error']}", facts={"test": result})
    if session.as_json:
        session.document(result)
    else:
        session.say(f"Webhook {id_} answered {result['status']}.")


@webhook.command()
@click.argument("id_", metavar="ID")
@AFTER
@client_command
def rearm(session: Session, *, id_: str, after: str | None) -> None:
    """Resume the deliveries of a webhook.

    Continues after the last delivered event, unless --after is given.
    """
    body = session.client.webhooks.rearm(id_, after)
    if session.as_json:
        session.document(body)
    else:
        session.say(f"Webhook {id_} continues after {body['sequence']}.")


def _show(session: Session, found: JsonMapping) -> None:
    keys = (
        "id", "url", "secret", "state", "stack_name", "nested_depth", "events", "sequence", "delivered",
        "tries", "last_error",
    )  # fmt: skip
    pairs = [(key.replace("_", " "), found[key]) for key in keys]
    for key in ("delivered_at", "failing_since", "next_attempt_at", "creation_time"):
        pairs.append((key.replace("_", " "), render.time(found[key])))
    render.facts(session.out(), pairs)
