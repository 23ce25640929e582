"""Results as text: tables, name-value lists, statuses in colour, values, times."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

import orjson
import yaml
from rich.console import Console
from rich.table import Table
from rich.text import Text

from orchestrator.cli.exit_codes import clean, one_line
from orchestrator.json_types import JsonObject

WHOLE = frozenset({"ID"})  # columns whose cells are copied
STYLES = {"COMPLETE": "green", "FAILED": "red", "IN_PROGRESS": "yellow"}


def status(text: str) -> Text:
    """Return a status in its colour; `INIT_COMPLETE` is no success yet."""
    if text.startswith("INIT_"):
        return Text(text, style="dim")
    style = next((style for end, style in STYLES.items() if text.endswith(end)), "")
    return Text(clean(text), style=style)


def table(console: Console, headers: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows under headers: a row is a line in a pipe; on a terminal long cells wrap, except ids."""
    made = Table(box=None, pad_edge=False, header_style="bold", show_header=True)
    for header in headers:
        made.add_column(header, overflow="fold", no_wrap=header in WHOLE)
    for row in rows:
        made.add_row(*(_cell(value) for value in row))
    _print(console, made)


def facts(console: Console, pairs: Iterable[tuple[str, object]]) -> None:
    """Print name and value, a pair per line, without empty values."""
    made = Table(box=None, pad_edge=False, show_header=False)
    made.add_column(style="bold", no_wrap=True)
    made.add_column(overflow="fold")
    for name, value in pairs:
        if value not in (None, "", [], {}):
            made.add_row(name, value if isinstance(value, Text) else Text(clean(as_text(value))))
    _print(console, made)


SECRET_HINT = "  A secret value is printed by: orchestrator stack outputs STACK OUTPUT"  # noqa: S105 - a sentence


def outputs(console: Console, items: Sequence[JsonObject]) -> None:
    """Print outputs under their names, and how to print a masked value; a structured or long value gets lines
    of its own.
    """
    for output in items:
        name, error = clean(output["output_key"]), output.get("output_error")
        text = clean(f"({error})" if error else as_text(output.get("output_value")))
        style = "red" if error else ""
        line = Text(f"  {name}", style="bold")
        is_structured = isinstance(output.get("output_value"), dict | list) and output["output_value"]
        if "\n" in text or (is_structured and not error):
            line.append(
                "\n" + "\n".join(f"    {part}" for part in text.rstrip().splitlines()),
                style=style or "not bold",
            )
        else:
            line.append(f" = {text}", style=style or "not bold")
        console.print(line, soft_wrap=True)
    if any(output.get("secret") for output in items):
        console.print(Text(SECRET_HINT, style="dim"), soft_wrap=True)


def as_text(value: object) -> str:
    """Return a value as in a template: strings unquoted, everything else as YAML."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict | list):
        return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, default_flow_style=False).rstrip()
    return orjson.dumps(value).decode()


def time(value: str | datetime | None) -> str:
    """Return a time in the local zone with its offset (2026-01-31T13:00:01+01:00), `Z` for UTC; "" for None.

    Every command prints times in this form.
    """
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) and value else value
    except ValueError:
        return str(value)
    if not isinstance(moment, datetime):
        return ""
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return aware.astimezone().isoformat(timespec="seconds").replace("+00:00", "Z")


def _cell(value: object) -> Text:
    if isinstance(value, Text):
        return value
    return Text("" if value is None else one_line(as_text(value)))


def _print(console: Console, table: Table) -> None:
    """Print a table; in a pipe without trailing spaces."""
    if console.is_terminal:
        console.print(table)
        return
    with console.capture() as capture:
        console.print(table)
    for line in capture.get().splitlines():
        console.print(line.rstrip(), markup=False, highlight=False, soft_wrap=True)
