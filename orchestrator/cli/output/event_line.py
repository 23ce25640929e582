"""An event as a line of text, and the counts of an action as a phrase."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote

from rich.text import Text

from orchestrator.cli.exit_codes import clean, one_line
from orchestrator.cli.output import render
from orchestrator.json_types import JsonMapping

Event = JsonMapping
_USUAL: Final = re.compile(r"(state changed|Stack [A-Z]+ (started|completed successfully))?")


def event_line(event: Event, stack: str | None = None) -> Text:
    """Return time, status and resource of an event, with the reason of a failure.

    With `stack`, resources of other stacks are printed with the name of their stack. Other reasons
    are printed if they say more than the status.
    """
    status = str(event["resource_status"])
    style = next((style for end, style in render.STYLES.items() if status.endswith(end)), "")
    row = Text(render.time(event.get("event_time")) + " ", style="dim")
    row.append_text(Text(clean(status), style=f"not dim {style}"))
    row.append(f" {clean(_subject(event, stack))}", style="not dim")
    reason = one_line(event.get("resource_status_reason") or "")
    if status.endswith("_FAILED") or not _USUAL.fullmatch(reason):
        row.append(f": {reason}", style="not dim")
    return row


def stack_of(event: Event) -> tuple[str, str]:
    """Return the name and the id of the stack that an event belongs to, from its links."""
    href = next((link["href"] for link in event.get("links") or () if link["rel"] == "stack"), "")
    name, _, id_ = href.rpartition("/stacks/")[2].partition("/")
    return unquote(name), id_


def by_status(progress: JsonMapping) -> dict[str, int]:
    """Return the server's counts by status; "" counts resources before their first step."""
    return {
        "COMPLETE": progress["ready"],
        "IN_PROGRESS": progress["running"],
        "FAILED": progress["failed"],
        "": progress["waiting"] + progress["blocked"],
    }


def counts_text(progress: JsonMapping, remaining_seconds: float | None = None) -> str:
    """Return the server's counts as a phrase."""
    counts = by_status(progress)
    parts = [f"{counts['COMPLETE']} of {progress['total']} complete", f"{counts['IN_PROGRESS']} in progress"]
    if counts["FAILED"]:
        parts.append(f"{counts['FAILED']} failed")
    parts.append(f"{counts['']} waiting")
    if remaining_seconds is not None:
        parts.append(remaining_text(remaining_seconds))
    return "; ".join([", ".join(parts), *rollout_texts(progress)])


def rollout_texts(progress: JsonMapping) -> list[str]:
    """Return the batches of the groups that are updated in batches, as phrases."""
    return [
        f"{clean(item['resource_name'])}: batch {item['batch']} of {item['batches']}, "
        f"{item['updated']} of {item['total']} updated"
        for item in progress.get("rollouts") or ()
    ]


def remaining(elapsed_seconds: float, done: int, total: int) -> float | None:
    """Return the estimated seconds to the end, from the average so far; None without a basis."""
    if elapsed_seconds < 1.0 or done < 1 or done >= total:
        return None
    return elapsed_seconds * (total - done) / done


def remaining_text(seconds: float) -> str:
    """Return an estimate of the remaining time as a phrase."""
    return f"about {duration(seconds)} left"


def duration(seconds: float) -> str:
    """Return a duration in hours, minutes and seconds, the largest two units of them."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h {minutes}m"
    return f"{minutes}m {rest}s" if minutes else f"{rest}s"


def _subject(event: Event, stack: str | None) -> str:
    """Return the resource of an event; the name of a stack for its events about itself."""
    name = str(event["resource_name"])
    owner, id_ = stack_of(event)
    if id_ and event["physical_resource_id"] == id_:
        return f"{name} (stack)"
    return name if stack is None or owner in {"", stack} else f"{owner}.{name}"
