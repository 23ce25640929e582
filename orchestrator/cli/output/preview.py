"""Previews of creates and updates as text: the changes, and their number at the end."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import click
import orjson
from rich.console import Console
from rich.text import Text

from orchestrator.cli.exit_codes import Exit, clean, one_line
from orchestrator.cli.options import Session, Wait
from orchestrator.cli.output.render import as_text
from orchestrator.json_types import JsonMapping

UNKNOWN: Final = "(not known yet)"
ABSENT: Final = "(nothing)"
MAX_WIDTH: Final = 100  # characters of a value on a line
MAX_LINES: Final = 40  # of the differences of a value
CONTEXT_LINES: Final = 2  # around a difference
# The lists of an update preview: sign, verb, style, and the phrase of the summary.
CHANGES: Final[Mapping[str, tuple[str, str, str, str]]] = {
    "added": ("+", "added", "green", "to add"),
    "updated": ("~", "updated", "yellow", "to update"),
    "replaced": ("-/+", "replaced", "magenta", "to replace"),
    "deleted": ("-", "deleted", "red", "to delete"),
}

Resource = JsonMapping


def refuse_waiting(*, preview: bool, wait: Wait) -> None:
    """Refuse `--preview` with `--wait`.

    Raises:
        click.UsageError: both were given.
    """
    if preview and wait:
        raise click.UsageError("--wait has no effect with --preview: a preview starts no action")


def show(session: Session, preview: JsonMapping, *, detailed_exitcode: bool = False) -> None:
    """Print the preview of a create (a stack) or of an update (lists of resources).

    With `detailed_exitcode`, exit with `Exit.CHANGES` if there are changes.
    """
    if session.as_json:
        session.document(preview)
    elif "resources" in preview:
        show_create(session.out(), preview)
    else:
        show_update(session.out(), preview)
    changes = preview["resources"] if "resources" in preview else any(preview[change] for change in CHANGES)
    if detailed_exitcode and changes:
        sys.exit(Exit.CHANGES)


def show_update(out: Console, changes: Mapping[str, Sequence[Resource]]) -> None:
    """Print the change of each resource, and the number of changes."""
    for change in CHANGES:
        for resource in sorted(changes[change], key=_sort_key):
            _change(out, change, resource)
    for resource in changes["unchanged"]:
        if resource.get("because"):
            out.print(Text(f"    {_name(resource)}: {one_line(resource['because'])}"), soft_wrap=True)
    counts = [
        f"{len(changes[change])} {phrase}" for change, (*_, phrase) in CHANGES.items() if changes[change]
    ]
    same = f"{len(changes['unchanged'])} unchanged"
    summary = f"{', '.join(counts)}; {same}." if counts else f"No changes: {same}."
    out.print(Text(summary, style="bold"), soft_wrap=True)
    if refused := sum(
        bool(resource.get("restricted_action")) for change in changes.values() for resource in change
    ):
        out.print(Text(f"The update would fail: {refused} refused.", style="bold red"), soft_wrap=True)


def _change(out: Console, change: str, resource: Resource) -> None:
    sign, verb, style, _ = CHANGES[change]
    line = Text(f"{sign:>3} {_name(resource)}", style=f"bold {style}")
    line.append(f"  {one_line(resource['resource_type'])}", style="not bold dim")
    line.append(f"  {'' if resource.get('certain', True) else 'may be '}{verb}", style=f"not bold {style}")
    if resource.get("because"):
        line.append(f": {one_line(resource['because'])}", style="not bold default")
    out.print(line, soft_wrap=True)
    if resource.get("restricted_action"):
        action = one_line(resource["restricted_action"])
        refusal = f"      refused: {action} is restricted for resource, the update would fail"
        out.print(Text(refusal, style="bold red"), soft_wrap=True)
    _properties(out, resource)


def show_create(out: Console, stack: JsonMapping) -> None:
    """Print the resources that a create would make, with their known properties, and their number."""
    sign, _, style, phrase = CHANGES["added"]
    resources = list(_flat(stack["resources"]))
    for resource in resources:
        line = Text(f"{sign:>3} {_name(resource)}", style=f"bold {style}")
        line.append(f"  {one_line(resource['resource_type'])}", style="not bold dim")
        out.print(line, soft_wrap=True)
        unknown = resource.get("unknown_properties") or ()
        for name, value in resource["properties"].items():
            if name in unknown or value not in (None, "", [], {}):
                shown = UNKNOWN if name in unknown else _short(value)
                out.print(Text(f"      {clean(name)} = {shown}"), soft_wrap=True)
    out.print(Text(f"{len(resources)} {phrase}.", style="bold"), soft_wrap=True)


def _name(resource: Resource) -> str:
    """Return the name of a resource, in a nested stack with the name of the stack."""
    name = one_line(resource["resource_name"])
    return f"{one_line(resource['stack_name'])}.{name}" if resource.get("parent_resource") else name


def _sort_key(resource: Resource) -> tuple[str, str]:
    """Return the position of a resource in a list: those of the stack itself first."""
    stack = str(resource["stack_name"]) if resource.get("parent_resource") else ""
    return stack, str(resource["resource_name"])


def _flat(resources: Sequence[Any]) -> Iterator[Resource]:
    """Yield resources; a nested stack is a list of its resources."""
    for resource in resources:
        if isinstance(resource, Mapping):
            yield resource
        else:
            yield from _flat(resource)


def _properties(out: Console, resource: Resource) -> None:
    unknown = resource.get("unknown_properties") or ()
    for name, (before, after) in (resource.get("changed_properties") or {}).items():
        if name not in unknown and _is_long(before, after):
            out.print(Text(f"      {clean(name)}:"), soft_wrap=True)
            for line, style in _difference(as_text(before), as_text(after)):
                out.print(Text(f"        {clean(line)}", style=style), soft_wrap=True)
            continue
        text = Text(f"      {clean(name)}: ")
        text.append(_short(before), style="red")
        text.append(" → ")
        text.append(UNKNOWN if name in unknown else _short(after), style="green")
        out.print(text, soft_wrap=True)


def _short(value: object) -> str:
    if value is None:
        return ABSENT
    text = clean(orjson.dumps(value).decode())
    return text if len(text) <= MAX_WIDTH else f"{text[:MAX_WIDTH]}…"


def _is_long(before: object, after: object) -> bool:
    """Whether the difference of two values is shown line by line."""
    if before is None or after is None:
        return False
    many = any(isinstance(value, str) and "\n" in value.rstrip("\n") for value in (before, after))
    return many or any(
        isinstance(v, dict | list) and len(orjson.dumps(v)) > MAX_WIDTH for v in (before, after)
    )


def _difference(before: str, after: str) -> Iterator[tuple[str, str]]:
    """Yield the lines that differ with some context, and their styles."""
    differences = difflib.unified_diff(before.splitlines(), after.splitlines(), n=CONTEXT_LINES, lineterm="")
    lines = list(differences)[2:]  # without the file names
    styles = {"+": "green", "-": "red", "@": "dim"}
    for line in lines[:MAX_LINES]:
        yield line, styles.get(line[:1], "")
    if len(lines) > MAX_LINES:
        yield f"… {len(lines) - MAX_LINES} more lines", "dim"
