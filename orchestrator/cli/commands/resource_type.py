"""`orchestrator resource-type list` and `show`: the types that templates can use."""

from __future__ import annotations

from fnmatch import fnmatchcase

import click

from orchestrator.cli.lazy_group import LazyGroup
from orchestrator.cli.options import Session, client_command
from orchestrator.cli.output import render
from orchestrator.json_types import JsonMapping


@click.group("resource-type", cls=LazyGroup, entries={})
def resource_type() -> None:
    """List and show the resource types of the server."""


@resource_type.command("list")
@click.argument("pattern", required=False)
@client_command
def list_types(session: Session, *, pattern: str | None) -> None:
    """List the resource types of the server.

    PATTERN selects names, with * and ? as wildcards; a pattern without wildcards selects the names that
    contain it.
    """
    types = session.client.resource_types.list_all()
    if pattern:
        glob = (pattern if {"*", "?"} & set(pattern) else f"*{pattern}*").lower()
        types = [entry for entry in types if fnmatchcase(str(entry["resource_type"]).lower(), glob)]
    if session.as_json:
        session.document({"resource_types": types})
    elif types or session.quiet:
        rows = [(entry["resource_type"], entry.get("description") or "") for entry in types]
        render.table(session.out(), ("TYPE", "DESCRIPTION"), rows)
    else:
        session.say(
            f"No resource type matches {pattern}." if pattern else "The server has no resource types."
        )


@resource_type.command()
@click.argument("name", metavar="TYPE")
@client_command
def show(session: Session, *, name: str) -> None:
    """Show properties and attributes of a resource type."""
    schema = session.client.resource_types.show(name)
    if session.as_json:
        session.document(schema)
        return
    out, support = session.out(), schema.get("support_status") or {}
    render.facts(
        out,
        (
            ("type", schema["resource_type"]),
            ("description", schema.get("description")),
            ("support status", support.get("status")),
        ),
    )
    if properties := schema.get("properties"):
        session.say("\nProperties")
        rows = [
            (
                key,
                declaration["type"],
                _default(declaration),
                "yes" if declaration.get("update_allowed") else "no",
                declaration.get("description"),
            )
            for key, declaration in sorted(
                properties.items(), key=lambda item: (not item[1].get("required"), item[0])
            )
        ]
        render.table(out, ("NAME", "TYPE", "DEFAULT", "UPDATABLE", "DESCRIPTION"), rows)
    if attributes := schema.get("attributes"):
        session.say("\nAttributes")
        pairs = sorted(attributes.items())
        described = [
            (key, declaration.get("type"), declaration.get("description")) for key, declaration in pairs
        ]
        render.table(out, ("NAME", "TYPE", "DESCRIPTION"), described)


def _default(schema: JsonMapping) -> object:
    return "(required)" if schema.get("required") else schema.get("default")
