"""What a create or an update would do, for people: the dangerous last, next to the count of all."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import orjson
from rich.console import Console
from rich.text import Text

from orchestrator.cli.exit_codes import Failure, clean, one_line
from orchestrator.cli.options import Session
from orchestrator.cli.output.render import plain

LATER: Final = "(not known yet)"
NOTHING: Final = "(nothing)"
LONGEST: Final = 100  # characters of a value that is told in one line
MOST_LINES: Final = 40  # of the differences of one value
CONTEXT: Final = 2  # lines around a difference
# What becomes of resources: sign, word, style, and what there is to count.
TURNS: Final[Mapping[str, tuple[str, str, str, str]]] = {
    "added": ("+", "added", "green", "to add"),
    "updated": ("~", "updated", "yellow", "to update"),
    "replaced": ("-/+", "replaced", "magenta", "to replace"),
    "deleted": ("-", "deleted", "red", "to delete"),
}

Resource = Mapping[str, Any]


def refuse_waiting(*, preview: bool, wait: bool) -> None:
    """Refuse to wait for what a preview does not begin.

    Raises:
        Failure: both were asked for.
    """
    if preview and wait:
        raise Failure("--preview does nothing that could be waited for: leave out --wait")


def show(session: Session, told: Mapping[str, Any]) -> None:
    """Print what a create (then it is a stack) or an update (then it is lists of resources) would do."""
    if session.as_json:
        session.document(told)
    elif "resources" in told:
        show_create(session.out(), told)
    else:
        show_update(session.out(), told)


def show_update(out: Console, changes: Mapping[str, Sequence[Resource]]) -> None:
    """Print what an update would do to each resource, and the counts."""
    for turn, (sign, word, style, _) in TURNS.items():
        for one in sorted(changes[turn], key=_place):
            certain = one.get("certain", True)
            told = f"{sign:>3} {_name(one)}"
            line = Text(told, style=f"bold {style}")
            line.append(f"  {one_line(one['resource_type'])}", style="not bold dim")
            line.append(f"  {'' if certain else 'may be '}{word}", style=f"not bold {style}")
            if one.get("because"):
                line.append(f": {one_line(one['because'])}", style="not bold default")
            out.print(line, soft_wrap=True)
            if one.get("restricted_action"):
                action = one_line(one["restricted_action"])
                told = f"      refused: {action} is restricted for resource, the update would fail"
                out.print(Text(told, style="bold red"), soft_wrap=True)
            _properties(out, one)
    for one in changes["unchanged"]:
        if one.get("because"):
            out.print(Text(f"    {_name(one)}: {one_line(one['because'])}"), soft_wrap=True)
    counts = [f"{len(changes[turn])} {of}" for turn, (_, _, _, of) in TURNS.items() if changes[turn]]
    same = f"{len(changes['unchanged'])} unchanged"
    summary = f"{', '.join(counts)}; {same}." if counts else f"Nothing would change: {same}."
    out.print(Text(summary, style="bold"), soft_wrap=True)
    if refused := sum(bool(one.get("restricted_action")) for turn in changes.values() for one in turn):
        out.print(Text(f"The update would fail: {refused} refused.", style="bold red"), soft_wrap=True)


def show_create(out: Console, stack: Mapping[str, Any]) -> None:
    """Print what a create would make, with the properties that are known, and how many there are."""
    sign, _, style, of = TURNS["added"]
    every = list(_flat(stack["resources"]))
    for one in every:
        line = Text(f"{sign:>3} {_name(one)}", style=f"bold {style}")
        line.append(f"  {one_line(one['resource_type'])}", style="not bold dim")
        out.print(line, soft_wrap=True)
        for name, value in one["properties"].items():
            if value not in (None, "", [], {}):
                out.print(Text(f"      {clean(name)} = {_short(value)}"), soft_wrap=True)
    out.print(Text(f"{len(every)} {of}.", style="bold"), soft_wrap=True)


def _name(one: Resource) -> str:
    """Return a resource's name, of one in a nested stack with the stack's."""
    name = one_line(one["resource_name"])
    return f"{one_line(one['stack_name'])}.{name}" if one.get("parent_resource") else name


def _place(one: Resource) -> tuple[str, str]:
    """Return where a resource stands in a list: those of the stack itself first."""
    return str(one["stack_name"]) if one.get("parent_resource") else "", str(one["resource_name"])


def _flat(resources: Sequence[Any]) -> Iterator[Resource]:
    """Yield resources, of one that stands for a stack what is in that."""
    for one in resources:
        if isinstance(one, Mapping):
            yield one
        else:
            yield from _flat(one)


def _properties(out: Console, one: Resource) -> None:
    unknown = one.get("unknown_properties") or ()
    for name, (before, after) in (one.get("changed_properties") or {}).items():
        if name not in unknown and _is_long(before, after):
            out.print(Text(f"      {clean(name)}:"), soft_wrap=True)
            for line, style in _difference(plain(before), plain(after)):
                out.print(Text(f"        {clean(line)}", style=style), soft_wrap=True)
            continue
        text = Text(f"      {clean(name)}: ")
        text.append(_short(before), style="red")
        text.append(" → ")
        text.append(LATER if name in unknown else _short(after), style="green")
        out.print(text, soft_wrap=True)


def _short(value: object) -> str:
    if value is None:
        return NOTHING
    text = clean(orjson.dumps(value).decode())
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _is_long(before: object, after: object) -> bool:
    """Whether two values are better told by the lines in which they differ."""
    if before is None or after is None:
        return False
    many = any(isinstance(value, str) and "\n" in value.rstrip("\n") for value in (before, after))
    return many or any(isinstance(v, dict | list) and len(orjson.dumps(v)) > LONGEST for v in (before, after))


def _difference(before: str, after: str) -> Iterator[tuple[str, str]]:
    """Yield the lines that differ, some of those around them, and their styles."""
    told = difflib.unified_diff(before.splitlines(), after.splitlines(), n=CONTEXT, lineterm="")
    lines = list(told)[2:]  # after the names of the files
    styles = {"+": "green", "-": "red", "@": "dim"}
    for line in lines[:MOST_LINES]:
        yield line, styles.get(line[:1], "")
    if len(lines) > MOST_LINES:
        yield f"… {len(lines) - MOST_LINES} lines more", "dim"
