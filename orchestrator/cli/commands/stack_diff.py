"""`orchestrator stack diff`: what differs between two revisions of a stack."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any, Final

import click
import orjson
from rich.console import Console
from rich.text import Text

from orchestrator.cli.client.api_client import StackId
from orchestrator.cli.exit_codes import Exit, Failure, clean
from orchestrator.cli.options import Session, client_command

TITLES: Final = {
    "general": "Template",
    "parameters": "Parameters",
    "parameter_defaults": "Parameter defaults",
    "resource_registry": "Resource registry",
    "conditions": "Conditions",
    "mappings": "Mappings",
    "resources": "Resources",
    "outputs": "Outputs",
    "files": "Files",
}
MASK: Final = "******"
HASHED: Final = frozenset({"files"})  # sections whose values say nothing to a person


@click.command()
@click.argument("name")
@click.argument("before", type=int, required=False)
@click.argument("after", type=int, required=False)
@client_command
def diff(session: Session, *, name: str, before: int | None, after: int | None) -> None:
    """Show what differs between the revisions BEFORE and AFTER of the stack NAME.

    Without AFTER it is the desired revision, without BEFORE the last good one. Exits 2 when they differ.
    """
    found = session.client.find(name)
    if before is None or after is None:
        good, desired = _marked(session, found)
        after = desired if after is None else after
        before = good if before is None else before
    if before is None or after is None:
        raise Failure(f"stack {name} was never complete: name two revisions to compare")
    differences = session.client.diff(found, before, after)
    if session.as_json:
        session.document(differences)
    elif differences["sections"]:
        session.say(f"Stack {found.name}: from revision {before} to {after}")
        _print(session.out(), differences["sections"])
    else:
        session.say(f"Revisions {before} and {after} of stack {found.name} do not differ.")
    if differences["sections"]:
        sys.exit(Exit.CHANGES)


def _marked(session: Session, found: StackId) -> tuple[int | None, int | None]:
    """Return the numbers of the last good and of the desired revision."""
    good = desired = None
    for one in session.client.revisions(found):
        desired = one["number"] if one["is_desired"] else desired
        good = one["number"] if one["is_last_good"] else good
        if good is not None and desired is not None:
            break
    return good, desired


def _print(out: Console, sections: Mapping[str, Any]) -> None:
    for name, section in sections.items():
        out.print(Text(TITLES.get(name, name), style="bold"), soft_wrap=True)
        for line in _lines(section, told=name not in HASHED):
            out.print(line, soft_wrap=True)


def _lines(section: Mapping[str, Any], *, told: bool) -> Iterable[Text]:
    for one in section["added"]:
        yield _entry("+", one, "green")
    for one in section["removed"]:
        yield _entry("-", one, "red")
    for one in section["changed"]:
        yield _entry("~", one, "yellow")
        for change in one["changes"] if told else ():
            yield _change(change)
        if one["more"]:
            yield Text(f"      and {one['more']} more", style="dim")


def _entry(sign: str, one: Mapping[str, Any], style: str) -> Text:
    kind = f" ({one['type']})" if one.get("type") else ""
    return Text(clean(f"  {sign} {one['name']}{kind}"), style=style)


def _change(change: Mapping[str, Any]) -> Text:
    path = f"{change['path']}: " if change["path"] else ""
    line = Text(clean(f"      {path}"))
    if change.get("before") == change.get("after") == MASK:
        return line.append("differs, and is not shown")
    if "before" in change:
        line.append(_value(change["before"]), style="red")
        line.append(" -> " if "after" in change else " is gone")
    else:
        line.append("now ")
    if "after" in change:
        line.append(_value(change["after"]), style="green")
    return line


def _value(value: object) -> str:
    return clean(orjson.dumps(value).decode())
