"""`orchestrator stack diff`: the differences between two revisions of a stack."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Final

import click
import orjson
from rich.console import Console
from rich.text import Text

from orchestrator.cli.client.connection import StackId
from orchestrator.cli.exit_codes import Exit, Failure, clean
from orchestrator.cli.options import Session, client_command, stack_argument
from orchestrator.json_types import JsonMapping

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
HASHED: Final = frozenset({"files"})  # sections whose values are digests


@click.command()
@stack_argument
@click.argument("before", type=int, required=False)
@click.argument("after", type=int, required=False)
@client_command
def diff(session: Session, *, name: str, before: int | None, after: int | None) -> None:
    """Show the differences between two revisions of a stack.

    AFTER defaults to the desired revision, BEFORE to the last good revision. The exit code is 2 if there are
    differences.
    """
    stack = session.client.stacks.find(name)
    defaults = before is None and after is None
    if before is None or after is None:
        good, desired = _defaults(session, stack)
        after = desired if after is None else after
        before = good if before is None else before
    if before is None or after is None:
        raise Failure(f"stack {name} has no good revision; give the numbers of two revisions")
    if defaults and before == after and not session.as_json:
        session.say(f"Stack {stack.name} is at its last good revision, {after}; there is nothing to compare.")
        return
    differences = session.client.revisions.diff(stack, before, after)
    if session.as_json:
        session.document(differences)
    elif differences["sections"]:
        session.say(f"Stack {stack.name}: from revision {before} to {after}")
        _print(session.out(), differences["sections"])
    else:
        session.say(f"Revisions {before} and {after} of stack {stack.name} do not differ.")
    if differences["sections"]:
        sys.exit(Exit.CHANGES)


def _defaults(session: Session, stack: StackId) -> tuple[int | None, int | None]:
    """Return the numbers of the last good and of the desired revision."""
    good = desired = None
    for revision in session.client.revisions.list_all(stack):
        desired = revision["number"] if revision["is_desired"] else desired
        good = revision["number"] if revision["is_last_good"] else good
        if good is not None and desired is not None:
            break
    return good, desired


def _print(out: Console, sections: JsonMapping) -> None:
    for name, section in sections.items():
        out.print(Text(TITLES.get(name, name), style="bold"), soft_wrap=True)
        for line in _lines(section, with_values=name not in HASHED):
            out.print(line, soft_wrap=True)


def _lines(section: JsonMapping, *, with_values: bool) -> Iterable[Text]:
    for entry in section["added"]:
        yield _entry("+", entry, "green")
    for entry in section["removed"]:
        yield _entry("-", entry, "red")
    for entry in section["changed"]:
        yield _entry("~", entry, "yellow")
        for change in entry["changes"] if with_values else ():
            yield _change(change)
        if entry["more"]:
            yield Text(f"      and {entry['more']} more", style="dim")


def _entry(sign: str, entry: JsonMapping, style: str) -> Text:
    type_name = f" ({entry['type']})" if entry.get("type") else ""
    return Text(clean(f"  {sign} {entry['name']}{type_name}"), style=style)


def _change(change: JsonMapping) -> Text:
    path = f"{change['path']}: " if change["path"] else ""
    line = Text(clean(f"      {path}"))
    if change.get("before") == change.get("after") == MASK:
        return line.append("changed; the values are secret")
    if "before" in change:
        line.append(_value(change["before"]), style="red")
        line.append(" -> " if "after" in change else " removed")
    else:
        line.append("now ")
    if "after" in change:
        line.append(_value(change["after"]), style="green")
    return line


def _value(value: object) -> str:
    return clean(orjson.dumps(value).decode())
