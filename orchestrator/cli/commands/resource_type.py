"""`orchestrator resource-type list` and `show`: the types that templates can use."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

import click

from orchestrator.cli.lazy_group import LazyGroup
from orchestrator.cli.options import Session, client_command
from orchestrator.cli.output import render


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
    found = session.client.resource_types.list_all()
    if pattern:
        glob = (pattern if {"*", "?"} & set(pattern) else f"*{pattern}*").lower()
        found = [one for one in found if fnmatchcase(str(one["resource_type"]).lower(), glob)]
    if session.as_json:
        session.document({"resource_types": found})
    elif found or session.quiet:
        rows = [(one["resource_type"], one.get("description") or "") for one in found]
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
    found = session.client.resource_types.show(name)
    if session.as_json:
        session.document(found)
        return
    out, support = session.out(), found.get("support_status") or {}
    render.facts(
        out,
        (
            ("type", found["resource_type"]),
            ("description", found.get("description")),
            ("support status", support.get("status")),
        ),
    )
    if properties := found.get("properties"):
        session.say("\nProperties")
        rows = [
            (
                key,
                one["type"],
                _default(one),
                "yes" if one.get("update_allowed") else "no",
                one.get("description"),
            )
            for key, one in sorted(
                properties.items(), key=lambda item: (not item[1].get("required"), item[0])
            )
        ]
        render.table(out, ("NAME", "TYPE", "DEFAULT", "UPDATABLE", "DESCRIPTION"), rows)
    if attributes := found.get("attributes"):
        session.say("\nAttributes")
        pairs = sorted(attributes.items())
        described = [(key, one.get("type"), one.get("description")) for key, one in pairs]
        render.table(out, ("NAME", "TYPE", "DESCRIPTION"), described)


def _default(schema: Mapping[str, Any]) -> object:
    return "(required)" if schema.get("required") else schema.get("default")
