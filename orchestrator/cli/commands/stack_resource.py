"""`orchestrator stack signal`, `hooks`, `clear-hook`, `mark-unhealthy`, `metadata`: for a single resource."""

from __future__ import annotations

from typing import Any

import click
import orjson

from orchestrator.cli.exit_codes import Failure
from orchestrator.cli.options import Session, client_command, stack_argument
from orchestrator.cli.output import render
from orchestrator.template.resource_registry_entries import HOOKS


def read_data(_ctx: click.Context, option: click.Parameter, text: str | None) -> Any:
    """Read the JSON object of a signal."""
    if text is None:
        return None
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise click.BadParameter(f"not valid JSON: {error}", param=option) from error
    if not isinstance(value, dict):
        raise click.BadParameter('must be a JSON object: {"name": "value"}', param=option)
    return value


@click.command()
@stack_argument
@click.argument("resource")
@click.option("--data", metavar="JSON", callback=read_data, help="JSON object to send with the signal.")
@client_command
def signal(session: Session, *, name: str, resource: str, data: Any) -> None:
    """Send a signal to a resource.

    The server accepts the signal at once and processes it later.
    """
    stack = session.client.stacks.find(name)
    session.client.resources.signal(stack, resource, data)
    if session.as_json:
        session.document({"stack_name": stack.name, "resource_name": resource, "accepted": True})
    session.say(f"Signal sent to resource {resource} of stack {stack.name}.")


@click.command()
@stack_argument
@client_command
def hooks(session: Session, *, name: str) -> None:
    """List the resources of a stack that wait at a hook."""
    stack = session.client.stacks.find(name)
    waiting = session.client.resources.at_hooks(stack)
    if session.as_json:
        session.document({"hooks": waiting})
    elif waiting or session.quiet:
        rows = [
            (
                hook["resource_name"],
                hook["hook"],
                render.status(hook["resource_status"]),
                render.time(hook["waiting_since"]),
            )
            for hook in waiting
        ]
        render.table(session.out(), ("NAME", "HOOK", "STATUS", "WAITING SINCE"), rows)
    else:
        session.say(f"No resource of stack {stack.name} waits at a hook.")


@click.command("clear-hook")
@stack_argument
@click.argument("resource")
@click.argument("hook", required=False, type=click.Choice(HOOKS))
@client_command
def clear_hook(session: Session, *, name: str, resource: str, hook: str | None) -> None:
    """Clear the hook at which a resource waits."""
    stack = session.client.stacks.find(name)
    if hook is None:
        waiting = session.client.resources.at_hooks(stack)
        hook = next((entry["hook"] for entry in waiting if entry["resource_name"] == resource), None)
        if hook is None:
            waiting_hooks = ", ".join(f"{entry['resource_name']} ({entry['hook']})" for entry in waiting)
            raise Failure(
                f"resource {resource} of stack {stack.name} does not wait at a hook",
                details=[f"  resources that do: {waiting_hooks}"] if waiting_hooks else [],
            )
    session.client.resources.signal(stack, resource, {"unset_hook": hook})
    if session.as_json:
        session.document({"stack_name": stack.name, "resource_name": resource, "cleared": hook})
    session.say(f"Hook {hook} of resource {resource} of stack {stack.name} cleared.")


@click.command("mark-unhealthy")
@stack_argument
@click.argument("resource")
@click.argument("reason", required=False)
@click.option("--reset", is_flag=True, help="Remove the mark.")
@client_command
def mark_unhealthy(session: Session, *, name: str, resource: str, reason: str | None, reset: bool) -> None:
    """Mark a resource for replacement by the next update.

    RESOURCE is a name or a physical id.
    """
    stack = session.client.stacks.find(name)
    session.client.resources.mark_unhealthy(stack, resource, reason, unhealthy=not reset)
    if session.as_json:
        session.document({"stack_name": stack.name, "resource_name": resource, "mark_unhealthy": not reset})
    elif reset:
        session.say(f"Resource {resource} of stack {stack.name} is no longer marked unhealthy.")
    else:
        session.say(f"The next update replaces resource {resource} of stack {stack.name}.")


@click.command()
@stack_argument
@click.argument("resource")
@client_command
def metadata(session: Session, *, name: str, resource: str) -> None:
    """Print the metadata of a resource as YAML."""
    values = session.client.resources.metadata(session.client.stacks.find(name), resource)
    if session.as_json:
        session.document({"metadata": values})
    else:
        click.echo(render.as_text(values))
