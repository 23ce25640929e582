"""The state of an action as far as events, the resource list and the server's counts show it, drawn as a
tree.

The tree reads downwards in time: a resource stands below the last of its requirements, and a resource of a
nested stack below the resource that owns the stack. The drawing never exceeds the height of the window.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from orchestrator.cli.client.connection import StackId
from orchestrator.cli.exit_codes import clean
from orchestrator.cli.output import render
from orchestrator.cli.output.event_line import (
    by_status,
    duration,
    remaining,
    remaining_text,
    rollout_texts,
    stack_of,
)
from orchestrator.cli.watch.follow import Event, is_stack_event
from orchestrator.json_types import JsonMapping, JsonObject

MAX_LISTED: Final = 2_000  # resources; the list of a larger stack is not requested, only the server's counts
REFRESH_SECONDS: Final = 2.0
SIGNS: Final = {"COMPLETE": "✔", "FAILED": "✘", "IN_PROGRESS": "●"}
PRIORITY: Final = {"FAILED": 0, "IN_PROGRESS": 1, "COMPLETE": 2, "": 3}
MAX_INDENT: Final = 12  # levels


@dataclass(slots=True)
class Item:
    """A resource; times are of this process's monotonic clock."""

    name: str
    type: str = ""
    status: str = ""  # "" before its first event in this action
    stack_id: str = ""  # the nested stack of the resource; "" for the stack itself
    began: float | None = None
    ended: float | None = None
    depth: int = 0
    order: int = 0

    def seconds(self, now: float) -> float | None:
        """Return how long the resource has been in progress, or was."""
        return None if self.began is None else (self.ended or now) - self.began


@dataclass(slots=True)
class ProgressModel:
    """The resources of an action in the order of the tree, with the server's counts."""

    stack: StackId
    action: str
    clock: Callable[[], float] = time.monotonic
    items: dict[str, Item] = field(default_factory=dict)
    owners: dict[str, str] = field(
        default_factory=dict
    )  # id of a nested stack -> key of the resource that owns it
    total: int | None = None
    began: float = field(init=False)
    listed_at: float = -math.inf
    progress: JsonMapping = field(default_factory=dict)  # the server's counts
    counted_at: float = -math.inf

    def __post_init__(self) -> None:
        """Start the clock."""
        self.began = self.clock()

    def add_resources(self, resources: Iterable[JsonObject]) -> None:
        """Put the stack's resources into the order of the tree."""
        self.listed_at = self.clock()
        by_name = {resource["resource_name"]: resource for resource in resources}
        self.total = len(by_name)
        places = layout(
            {name: tuple(resource.get("required_by") or ()) for name, resource in by_name.items()}
        )
        for order, (name, depth) in enumerate(places):
            item = self.items.setdefault(name, Item(name))
            item.type, item.depth, item.order = by_name[name]["resource_type"], depth, order

    def add_event(self, event: Event) -> None:
        """Update the resource that the event is about."""
        stack_name, stack_id = stack_of(event)
        if is_stack_event(event, self.stack) or (stack_id and event["physical_resource_id"] == stack_id):
            return  # of a stack itself; the parent's resource shows the state of a nested stack
        nested = stack_id if stack_id not in {"", self.stack.id} else ""
        name = event["resource_name"]
        key = f"{nested}/{name}" if nested else name
        if key not in self.items:
            shown = f"{stack_name}.{name}" if nested and nested not in self.owners else name
            self.items[key] = Item(shown, stack_id=nested, order=len(self.items))
        if physical := event.get("physical_resource_id"):
            self.owners[physical] = key
        self._update(self.items[key], str(event["resource_status"]).partition("_")[2])

    def _update(self, item: Item, status: str) -> None:
        now = self.clock()
        if status == "IN_PROGRESS":
            again = item.began is None or item.ended is not None
            item.began, item.ended = now if again else item.began, None
        else:
            item.began, item.ended = item.began or now, now
        item.status = status

    def wants_resources(self) -> bool:
        """Whether to request the resource list: of a small stack, until it has all resources with events."""
        if not self._small() or not self.items or self.clock() - self.listed_at < REFRESH_SECONDS:
            return False
        return self._incomplete()

    def wants_counts(self) -> bool:
        """Whether to request the server's counts: always for a large stack and for nested stacks, otherwise
        until the list is there.
        """
        if not self.items or self.clock() - self.counted_at < REFRESH_SECONDS:
            return False
        return not self._small() or self._incomplete() or self._has_nested()

    def _incomplete(self) -> bool:
        return self.total is None or any(not item.type for item in self._own_items())

    def _own_items(self) -> list[Item]:
        return [item for item in self.items.values() if not item.stack_id]

    def _has_nested(self) -> bool:
        return any(item.stack_id for item in self.items.values())

    def _uses_counts(self) -> bool:
        """Whether the header shows the server's counts, which include nested stacks."""
        return bool(self.progress.get("total")) and (not self._small() or self._has_nested())

    def _small(self) -> bool:
        return bool(self.progress.get("counted_at")) and self.progress["total"] <= MAX_LISTED

    def set_counts(self, progress: JsonMapping) -> None:
        """Replace the server's counts."""
        self.counted_at, self.progress = self.clock(), progress

    def counts(self) -> Counter[str]:
        """Return the number of resources by status; "" counts resources without an event. Without the
        server's counts only the stack's own resources are known.
        """
        if self._uses_counts():
            return self._brought_forward(Counter(by_status(self.progress)))
        own_items = self._own_items()
        statuses = Counter(item.status for item in own_items)
        statuses[""] += max(0, (self.total or 0) - len(own_items))
        return statuses

    def _brought_forward(self, counts: Counter[str]) -> Counter[str]:
        """Return the server's counts with the resources that events have reported as complete since."""
        known = sum(item.status == "COMPLETE" for item in self.items.values())
        for status in ("IN_PROGRESS", ""):
            number = min(max(known - counts["COMPLETE"], 0), counts[status])
            counts["COMPLETE"] += number
            counts[status] -= number
        return counts

    def visible(self, height: int) -> list[Item]:
        """Return the items that fit: all of them, or the failed, the running and the last finished."""
        items = sorted(self.items.values(), key=self._position)
        if len(items) <= height:
            return items
        chosen = sorted(
            items, key=lambda item: (PRIORITY.get(item.status, 3), -(item.ended or 0.0), item.order)
        )[:height]
        return sorted(chosen, key=self._position)

    def _owner(self, item: Item) -> Item | None:
        return self.items.get(self.owners.get(item.stack_id, "")) if item.stack_id else None

    def _position(self, item: Item) -> tuple[float, ...]:
        """Return the sort key of an item: below its owner, or last if the owner is unknown."""
        owner = self._owner(item)
        if owner is not None and owner is not item:
            rank = int(item.name) if item.name.isdecimal() else item.order  # members by number
            return (*self._position(owner), rank)
        return (math.inf, item.order) if item.stack_id else (item.order,)

    def _path(self, item: Item) -> str:
        """Return the name of an item with the names of its owners."""
        owner = self._owner(item)
        return item.name if owner is None or owner is item else f"{self._path(owner)}.{item.name}"

    def _depth(self, item: Item) -> int:
        owner = self._owner(item)
        return item.depth if owner is None or owner is item else self._depth(owner) + 1

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw the header, the visible items, and the number of hidden items."""
        now, counts = self.clock(), self.counts()
        height = max(3, (options.height or console.height) - 4)
        shown = self.visible(height)
        yield self._header(now, counts)
        whole = len(shown) == len(self.items)
        for item in shown:
            if whole:
                yield self._row(item, item.name, now, indent=self._depth(item))
            else:  # without the rows of its owners
                yield self._row(item, self._path(item), now, indent=0)
        nested = 0 if self._uses_counts() else sum(bool(item.stack_id) for item in self.items.values())
        hidden = max(sum(counts.values()) + nested, len(self.items)) - len(shown)
        if hidden > 0:
            yield Text(f"  … and {hidden} more", style="dim")

    def _header(self, now: float, counts: Counter[str]) -> Text:
        total, elapsed = sum(counts.values()), now - self.began
        line = Text(f"{self.action} {clean(self.stack.name)}", style="bold")
        is_total_known = self.total is not None or bool(self.progress.get("total"))
        line.append(
            f"  {counts['COMPLETE']}{f' of {total}' if is_total_known else ''} complete",
            style="not bold green",
        )
        line.append(f", {counts['IN_PROGRESS']} in progress", style="not bold yellow")
        if counts["FAILED"]:
            line.append(f", {counts['FAILED']} failed", style="not bold red")
        nested = Counter(item.status for item in self.items.values() if item.stack_id)
        if nested and not self._uses_counts():
            done = f"{nested['COMPLETE']} of {sum(nested.values())}"
            line.append(f"; in nested stacks: {done} complete", style="not bold dim")
        line.append(f"  {duration(elapsed)}", style="not bold dim")
        remaining_seconds = (
            remaining(elapsed, counts["COMPLETE"] + counts["FAILED"], total) if is_total_known else None
        )
        if remaining_seconds is not None:
            line.append(f", {remaining_text(remaining_seconds)}", style="not bold dim")
        for rollout in rollout_texts(self.progress):
            line.append(f"; {rollout}", style="not bold dim")
        return line

    def _row(self, item: Item, name: str, now: float, indent: int) -> Text:
        style = render.STYLES.get(item.status, "dim")
        row = Text("  " * min(indent, MAX_INDENT) + "  ", no_wrap=True, overflow="ellipsis")
        row.append(SIGNS.get(item.status, "·") + " ", style=style)
        row.append(clean(name), style=style if item.status != "COMPLETE" else "")
        row.append(f"  {clean(item.type)}", style="dim")
        if (seconds := item.seconds(now)) is not None and (seconds >= 0.1 or item.status == "IN_PROGRESS"):
            row.append(f"  {seconds:.1f}s", style="dim")
        return row


def layout(required_by: dict[str, tuple[str, ...]]) -> list[tuple[str, int]]:
    """Return each name once with its depth, below the deepest of its requirements.

    Names in a cycle have no place in the tree and come last: every answer of a server can be drawn.
    """
    order, depth, parent = _by_requirements(required_by)
    below: dict[str | None, list[str]] = {}
    for name in sorted(order):
        below.setdefault(parent[name], []).append(name)
    rows: list[tuple[str, int]] = []
    waiting = list(reversed(below.get(None, [])))
    level = dict.fromkeys(waiting, 0)
    while waiting:
        name = waiting.pop()
        rows.append((name, level[name]))
        children = below.get(name, [])
        level.update(dict.fromkeys(children, level[name] + 1))
        waiting.extend(reversed(children))
    return rows + [(name, 0) for name in sorted(required_by.keys() - depth.keys())]


def _by_requirements(
    required_by: dict[str, tuple[str, ...]],
) -> tuple[list[str], dict[str, int], dict[str, str | None]]:
    """Return the names after all their requirements, their depths, and their deepest requirement."""
    open_requirements = dict.fromkeys(required_by, 0)
    for dependents in required_by.values():
        for dependent in dependents:
            if dependent in open_requirements:
                open_requirements[dependent] += 1
    ready = [name for name, count in open_requirements.items() if not count]
    depth = dict.fromkeys(ready, 0)
    parent: dict[str, str | None] = dict.fromkeys(ready)
    for name in ready:  # grows during the iteration
        for dependent in required_by[name]:
            if dependent not in open_requirements:
                continue
            if depth.get(dependent, -1) <= depth[name]:
                depth[dependent], parent[dependent] = depth[name] + 1, name
            open_requirements[dependent] -= 1
            if not open_requirements[dependent]:
                ready.append(dependent)
    placed = set(ready)
    return ready, {name: depth[name] for name in placed}, parent
