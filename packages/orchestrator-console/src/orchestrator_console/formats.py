"""Values as the pages show them: times, statuses and amounts. Pure, except for the registration."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any, Final

import orjson
from flask import Flask, url_for

from orchestrator_console.assets import asset
from orchestrator_console.failures import linked_stack
from orchestrator_console.json_types import JsonMapping

# The class, the symbol and the word of a status; the symbol distinguishes statuses without colour.
STATUSES: Final = {
    "COMPLETE": ("ok", "✓", "complete"),
    "FAILED": ("failed", "✕", "failed"),
    "IN_PROGRESS": ("busy", "◐", "in progress"),
}
UNKNOWN: Final = ("idle", "–", "unknown")
TIME: Final = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)Z")
# A state, or an action in progress, in a sentence of the API.
STATE: Final = re.compile(r"\b[A-Z]+_(?:COMPLETE|FAILED|IN_PROGRESS)\b|\b[A-Z]+(?= is in progress)")
UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def status_class(state: str) -> str:
    """Return the style class of a state such as `CREATE_COMPLETE`."""
    return _status(state)[0]


def status_symbol(state: str) -> str:
    """Return the symbol of a state."""
    return _status(state)[1]


def status_text(state: str) -> str:
    """Return a state in words: `create complete`."""
    return (state or "unknown").replace("_", " ").lower()


def _status(state: str) -> tuple[str, str, str]:
    return next((shown for end, shown in STATUSES.items() if (state or "").endswith(end)), UNKNOWN)


def moment(text: str | None) -> dt.datetime | None:
    """Return a time of the API, None for an absent time."""
    if not text:
        return None
    found = dt.datetime.fromisoformat(text.replace("Z", "+00:00"))
    return found if found.tzinfo else found.replace(tzinfo=dt.UTC)


def age(text: str | None, now: dt.datetime | None = None) -> str:
    """Return the time since a moment: `3 min ago`."""
    at = moment(text)
    if at is None:
        return "–"
    seconds = ((now or dt.datetime.now(dt.UTC)) - at).total_seconds()
    return "now" if seconds < 1 else f"{duration(seconds)} ago"


def duration(seconds: float | None) -> str:
    """Return a duration with at most two units: `2 h 5 min`."""
    if seconds is None:
        return "–"
    if seconds < 1:
        return f"{max(0.0, seconds) * 1_000:.0f} ms"
    if seconds < 10:
        return f"{seconds:.1f} s"
    rest, parts = round(seconds), []
    for size, unit in UNITS:
        if rest >= size:
            parts.append(f"{rest // size} {unit}")
            rest %= size
        if len(parts) == 2:
            break
    return " ".join(parts)


def number(value: int | None) -> str:
    """Return a number with separators of thousands."""
    return "–" if value is None else f"{value:,}".replace(",", "\u202f")


def counted(value: int, noun: str) -> str:
    """Return a number with its noun: `1 resource`, `2 resources`."""
    return f"{number(value)} {noun}{'' if value == 1 else 's'}"


def states(text: str) -> str:
    """Return a sentence with its states in words, as everywhere on the pages."""
    return STATE.sub(lambda found: status_text(found[0]), text)


def clock(text: str, now: dt.datetime | None = None) -> str:
    """Return a text with its times shortened: without the date if it is today."""
    today = (now or dt.datetime.now(dt.UTC)).date().isoformat()
    return TIME.sub(lambda found: f"{'' if found[1] == today else found[1] + ' '}{found[2]} UTC", text)


def event_place(event: JsonMapping, stack_id: str) -> str:
    """Return the name of the nested stack of an event, empty for another event."""
    found = linked_stack(event, "stack")
    is_nested = found is not None and found[1] not in (stack_id, event["physical_resource_id"])
    return found[0] if found is not None and is_nested else ""


def event_page(event: JsonMapping, project: str) -> str:
    """Return the address of the page of an event's resource, or of its stack."""
    found = linked_stack(event, "stack")
    if found is None:
        return ""
    values: dict[str, Any] = {"project": project, "name": found[0], "stack_id": found[1]}
    if event["physical_resource_id"] == found[1]:
        return url_for("stack.summary", **values)
    return url_for("resource.show", resource_name=event["resource_name"], **values)


def json_text(value: Any) -> str:
    """Return a value as indented JSON; a text as it is."""
    return value if isinstance(value, str) else orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()


def register(app: Flask) -> None:
    """Register the formats as filters of the templates."""
    app.jinja_env.globals["asset"] = asset
    for name, function in {
        "status_class": status_class,
        "status_symbol": status_symbol,
        "status_text": status_text,
        "age": age,
        "duration": duration,
        "number": number,
        "counted": counted,
        "states": states,
        "event_place": event_place,
        "event_page": event_page,
        "clock": clock,
        "sentence": lambda text: text[:1].upper() + text[1:],
        "json_text": json_text,
    }.items():
        app.jinja_env.filters[name] = function
