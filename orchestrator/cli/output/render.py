"""Results for people: tables that do not fold in a pipe, statuses in colour where there is colour, values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import orjson
import yaml
from rich.console import Console
from rich.table import Table
from rich.text import Text

from orchestrator.cli.exit_codes import clean, one_line

STYLES = {"COMPLETE": "green", "FAILED": "red", "IN_PROGRESS": "yellow"}


def status(text: str) -> Text:
    """Return a status in the colour of how it is going; `INIT_COMPLETE` is nothing to be glad of yet."""
    if text.startswith("INIT_"):
        return Text(text, style="dim")
    style = next((style for end, style in STYLES.items() if text.endswith(end)), "")
    return Text(clean(text), style=style)


def table(console: Console, headers: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows under headers; on a terminal long cells fold, in a pipe every row is one line."""
    made = Table(box=None, pad_edge=False, header_style="bold", show_header=True)
    for header in headers:
        made.add_column(header, overflow="fold")
    for row in rows:
        made.add_row(*(cell if isinstance(cell, Text) else Text(one_line(cell)) for cell in row))
    if console.is_terminal:
        console.print(made)
        return
    with console.capture() as capture:
        console.print(made)
    for line in capture.get().splitlines():
        console.print(line.rstrip(), markup=False, highlight=False, soft_wrap=True)


def facts(console: Console, pairs: Iterable[tuple[str, object]]) -> None:
    """Print name and value, one pair a line, the values aligned; empty values are left out."""
    made = Table(box=None, pad_edge=False, show_header=False)
    made.add_column(style="bold", no_wrap=True)
    made.add_column(overflow="fold")
    for name, value in pairs:
        if value not in (None, "", [], {}):
            made.add_row(name, value if isinstance(value, Text) else Text(clean(value)))
    console.print(made)


def outputs(console: Console, found: Sequence[dict[str, Any]]) -> None:
    """Print outputs under their names, a structured or long value on lines of its own."""
    for output in found:
        name, error = clean(output["output_key"]), output.get("output_error")
        text = clean(f"({error})" if error else plain(output.get("output_value")))
        style = "red" if error else ""
        line = Text(f"  {name}", style="bold")
        if "\n" in text:
            line.append(
                "\n" + "\n".join(f"    {part}" for part in text.rstrip().splitlines()),
                style=style or "not bold",
            )
        else:
            line.append(f" = {text}", style=style or "not bold")
        console.print(line, soft_wrap=True)


def plain(value: object) -> str:
    """Return a value as a person would write it: text as it is, the rest as YAML."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict | list):
        return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, default_flow_style=False).rstrip()
    return orjson.dumps(value).decode()


def moment(text: str | None) -> datetime | None:
    """Read one of the API's times (`2026-01-31T12:00:01Z`); None for none, and for one that is not a time."""
    try:
        return datetime.fromisoformat(text).astimezone(UTC) if text else None
    except ValueError:
        return None


def clock(text: str | None) -> str:
    """Return the time of day, here, of one of the API's times."""
    found = moment(text)
    return found.astimezone().strftime("%H:%M:%S") if found else "--:--:--"


def date(text: str | None) -> str:
    """Return day and time, here, of one of the API's times; empty for none."""
    found = moment(text)
    return found.astimezone().strftime("%Y-%m-%d %H:%M:%S") if found else ""
