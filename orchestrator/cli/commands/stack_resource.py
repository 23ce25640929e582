"""`orchestrator stack …` for one resource: signals, hooks, its health, its metadata."""

from __future__ import annotations

from typing import Any

import click
import orjson

from orchestrator.cli.exit_codes import Failure
from orchestrator.cli.options import Session, client_command
from orchestrator.cli.output import render
from orchestrator.template.resource_registry_entries import HOOKS


def read_data(_ctx: click.Context, option: click.Parameter, text: str | None) -> Any:
    """Read the JSON object of a signal."""
    if text is None:
        return None
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise click.BadParameter(f"it is not JSON: {error}", param=option) from error
    if not isinstance(value, dict):
        raise click.BadParameter('it must be a JSON object: {"name": "value"}', param=option)
    return value


@click.command()
@click.argument("name")
@click.argument("resource")
@click.option("--data", metavar="JSON", callback=read_data, help="A JSON object to send along.")
@client_command
def signal(session: Session, *, name: str, resource: str, data: Any) -> None:
    """Send a signal to a RESOURCE of the stack NAME; it takes it in afterwards."""
    found = session.client.find(name)
    session.client.signal(found, resource, data)
    if session.as_json:
        session.document({"stack_name": found.name, "resource_name": resource, "accepted": True})
    session.say(f"Resource {resource} of stack {found.name} was sent a signal.")


@click.command()
@click.argument("name")
@client_command
def hooks(session: Session, *, name: str) -> None:
    """List the resources of the stack NAME that wait at a hook."""
    found = session.client.find(name)
    waiting = session.client.waiting(found)
    if session.as_json:
        session.document({"hooks": waiting})
    elif waiting or session.quiet:
        rows = [
            (
                one["resource_name"],
                one["hook"],
                render.status(one["resource_status"]),
                render.date(one["waiting_since"]),
            )
            for one in waiting
        ]
        render.table(session.out(), ("NAME", "HOOK", "STATUS", "WAITING SINCE"), rows)
    else:
        session.say(f"No resource of stack {found.name} waits at a hook.")


@click.command("clear-hook")
@click.argument("name")
@click.argument("resource")
@click.argument("hook", required=False, type=click.Choice(HOOKS))
@client_command
def clear_hook(session: Session, *, name: str, resource: str, hook: str | None) -> None:
    """Let a RESOURCE of the stack NAME go on, from the HOOK it waits at."""
    found = session.client.find(name)
    if hook is None:
        waiting = session.client.waiting(found)
        hook = next((one["hook"] for one in waiting if one["resource_name"] == resource), None)
        if hook is None:
            others = ", ".join(f"{one['resource_name']} ({one['hook']})" for one in waiting)
            raise Failure(
                f"resource {resource} of stack {found.name} waits at no hook",
                details=[f"  these do: {others}"] if others else [],
            )
    session.client.signal(found, resource, {"unset_hook": hook})
    if session.as_json:
        session.document({"stack_name": found.name, "resource_name": resource, "cleared": hook})
    session.say(f"Resource {resource} of stack {found.name} goes on from {hook}.")


@click.command("mark-unhealthy")
@click.argument("name")
@click.argument("resource")
@click.argument("reason", required=False)
@click.option("--reset", is_flag=True, help="Take the mark back.")
@client_command
def mark_unhealthy(session: Session, *, name: str, resource: str, reason: str | None, reset: bool) -> None:
    """Have a RESOURCE of the stack NAME, by its name or physical id, replaced by the next update."""
    found = session.client.find(name)
    session.client.mark_unhealthy(found, resource, reason, unhealthy=not reset)
    if session.as_json:
        session.document({"stack_name": found.name, "resource_name": resource, "mark_unhealthy": not reset})
    elif reset:
        session.say(f"Resource {resource} of stack {found.name} is no longer marked unhealthy.")
    else:
        session.say(f"Resource {resource} of stack {found.name} is replaced by the next update.")


@click.command()
@click.argument("name")
@click.argument("resource")
@client_command
def metadata(session: Session, *, name: str, resource: str) -> None:
    """Print the metadata of a RESOURCE of the stack NAME, as YAML unless --json is given."""
    shown = session.client.metadata(session.client.find(name), resource)
    if session.as_json:
        session.document({"metadata": shown})
    else:
        click.echo(render.plain(shown))
