"""Progress of one action: a live tree on a terminal, one line an event in a pipe.

The tree reads downwards in time: a resource stands below the last of those it requires. It never grows taller
than the window; of a big stack the failed and the running come first, then what ended last.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Protocol, Self
from urllib.parse import unquote

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.live import Live
from rich.text import Text

from orchestrator.cli.client.api_client import StackId
from orchestrator.cli.exit_codes import clean, one_line
from orchestrator.cli.output import render
from orchestrator.cli.watch.follow import Event, is_stack_event

# Resources; of a stack with more, the list is not fetched: events name some, the server's figures count all.
TREE_LIMIT = 2_000
PLAN_EVERY_SECONDS = 2.0
SIGNS = {"COMPLETE": "✔", "FAILED": "✘", "IN_PROGRESS": "●"}
ORDER = {"FAILED": 0, "IN_PROGRESS": 1, "COMPLETE": 2, "": 3}


@dataclass(slots=True)
class Item:
    """One resource as the events show it; times are this process's own clock."""

    name: str
    type: str = ""
    action: str = ""
    status: str = ""  # "" until something happened to it in this action
    began: float | None = None
    ended: float | None = None
    depth: int = 0
    order: int = 0

    def seconds(self, now: float) -> float | None:
        """Return how long it has been at work, or was."""
        return None if self.began is None else (self.ended or now) - self.began


@dataclass(slots=True)
class ProgressModel:
    """What is known about an action: its resources in the order of the tree, and how they are."""

    stack: StackId
    action: str
    clock: Callable[[], float] = time.monotonic
    items: dict[str, Item] = field(default_factory=dict)
    total: int | None = None
    began: float = field(init=False)
    planned: float = -math.inf
    counted: Mapping[str, Any] = field(default_factory=dict)  # the server's figures
    counted_at: float = -math.inf

    def __post_init__(self) -> None:
        """Start the clock."""
        self.began = self.clock()

    def plan(self, resources: Iterable[dict[str, Any]]) -> None:
        """Take in the stack's resources and put them into the order of the tree."""
        self.planned = self.clock()
        known = {resource["resource_name"]: resource for resource in resources}
        self.total = len(known)
        places = layout({name: tuple(resource.get("required_by") or ()) for name, resource in known.items()})
        for order, (name, depth) in enumerate(places):
            item = self.items.setdefault(name, Item(name))
            item.type, item.depth, item.order = known[name]["resource_type"], depth, order

    def take(self, event: Event) -> None:
        """Take in one event."""
        if is_stack_event(event, self.stack):
            return
        action, _, status = str(event["resource_status"]).partition("_")
        name = event["resource_name"]
        item = self.items.setdefault(name, Item(name, order=len(self.items)))
        now = self.clock()
        if status == "IN_PROGRESS":
            item.began, item.ended = (
                (now if item.began is None or item.ended is not None else item.began),
                None,
            )
        else:
            item.began, item.ended = item.began or now, now
        item.action, item.status = action, status

    def incomplete(self) -> bool:
        """Whether the list of resources is worth asking for; a stack is planned in slices, so it may grow."""
        if not self._small() or not self.items or self.clock() - self.planned < PLAN_EVERY_SECONDS:
            return False
        return self._unlisted()

    def uncounted(self) -> bool:
        """Whether to ask for the server's figures: of a big stack always, of another before it is listed."""
        if not self.items or self.clock() - self.counted_at < PLAN_EVERY_SECONDS:
            return False
        return not self._small() or self._unlisted()

    def _unlisted(self) -> bool:
        return self.total is None or any(not item.type for item in self.items.values())

    def _small(self) -> bool:
        """Whether the stack is known to be small enough to be listed."""
        return bool(self.counted.get("counted_at")) and self.counted["total"] <= TREE_LIMIT

    def count(self, figures: Mapping[str, Any]) -> None:
        """Take in the server's figures."""
        self.counted_at, self.counted = self.clock(), figures

    def counts(self) -> Counter[str]:
        """Return how many resources are in each status; "" counts those that nothing happened to yet."""
        if self.counted.get("total") and not self._small():
            return Counter(_by_status(self.counted))
        found = Counter(item.status for item in self.items.values())
        found[""] += max(0, (self.total or 0) - len(self.items))
        return found

    def visible(self, height: int) -> list[Item]:
        """Return what fits: the whole tree, or else the most telling resources in the order of the tree."""
        items = sorted(self.items.values(), key=lambda item: item.order)
        if len(items) <= height:
            return items
        telling = sorted(
            items, key=lambda item: (ORDER.get(item.status, 3), -(item.ended or 0.0), item.order)
        )
        return sorted(telling[:height], key=lambda item: item.order)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw the header, what fits of the tree, and the rest as one line."""
        now, counts = self.clock(), self.counts()
        height = max(3, (options.height or console.height) - 4)
        shown = self.visible(height)
        yield self._header(now, counts)
        whole = len(shown) == len(self.items)
        for item in shown:
            yield self._row(item, now, indent=item.depth if whole else 0)
        hidden = sum(counts.values()) - len(shown)
        if hidden > 0:
            yield Text(f"  … and {hidden} more", style="dim")

    def _header(self, now: float, counts: Counter[str]) -> Text:
        total = sum(counts.values())
        line = Text(f"{self.action} {clean(self.stack.name)}", style="bold")
        of = f" of {total}" if self.total is not None or self.counted.get("total") else ""
        line.append(f"  {counts['COMPLETE']}{of} complete", style="not bold green")
        line.append(f", {counts['IN_PROGRESS']} running", style="not bold yellow")
        if counts["FAILED"]:
            line.append(f", {counts['FAILED']} failed", style="not bold red")
        line.append(f"  {now - self.began:.0f}s", style="not bold dim")
        return line

    def _row(self, item: Item, now: float, indent: int) -> Text:
        style = render.STYLES.get(item.status, "dim")
        row = Text("  " * min(indent, 12) + "  ", no_wrap=True, overflow="ellipsis")
        row.append(SIGNS.get(item.status, "·") + " ", style=style)
        row.append(clean(item.name), style=style if item.status != "COMPLETE" else "")
        row.append(f"  {clean(item.type)}", style="dim")
        if (seconds := item.seconds(now)) is not None and (seconds >= 0.1 or item.status == "IN_PROGRESS"):
            row.append(f"  {seconds:.1f}s", style="dim")
        return row


def layout(required_by: dict[str, tuple[str, ...]]) -> list[tuple[str, int]]:
    """Return the names with their depth, each once, below the deepest of those it requires.

    Names that a cycle holds together cannot be placed and come last: whatever a server sends is drawn.
    """
    waits = dict.fromkeys(required_by, 0)
    for dependents in required_by.values():
        for dependent in dependents:
            if dependent in waits:
                waits[dependent] += 1
    depth: dict[str, int] = {}
    parent: dict[str, str | None] = {}
    ready = [name for name, count in waits.items() if not count]
    depth.update(dict.fromkeys(ready, 0))
    parent.update(dict.fromkeys(ready))
    for name in ready:  # grows while it is walked: each name once, after all it requires
        for dependent in required_by[name]:
            if dependent not in waits:
                continue
            if depth.get(dependent, -1) <= depth[name]:
                depth[dependent], parent[dependent] = depth[name] + 1, name
            waits[dependent] -= 1
            if not waits[dependent]:
                ready.append(dependent)
    placed = set(ready)
    below: dict[str | None, list[str]] = {}
    for name in sorted(placed):
        below.setdefault(parent[name], []).append(name)
    found: list[tuple[str, int]] = []
    waiting = [(name, 0) for name in reversed(below.get(None, []))]
    while waiting:
        name, level = waiting.pop()
        found.append((name, level))
        waiting.extend((child, level + 1) for child in reversed(below.get(name, [])))
    return found + [(name, 0) for name in sorted(required_by.keys() - placed)]


class Progress(Protocol):
    """Somebody who is told what happens."""

    def __enter__(self) -> Self:
        """Begin."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End, however it went."""

    def take(self, event: Event) -> None:
        """Hear of one event."""

    def wants_plan(self) -> bool:
        """Whether the list of resources would help now."""

    def plan(self, resources: list[dict[str, Any]]) -> None:
        """Take the list of resources."""

    def wants_counts(self) -> bool:
        """Whether the server's figures would help now."""

    def count(self, figures: Mapping[str, Any]) -> None:
        """Take the server's figures."""


class NoProgress:
    """Tells nobody."""

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End."""

    def take(self, event: Event) -> None:
        """Ignore the event."""

    def wants_plan(self) -> bool:
        """Never."""
        return False

    def plan(self, resources: list[dict[str, Any]]) -> None:
        """Ignore the list."""

    def wants_counts(self) -> bool:
        """Never."""
        return False

    def count(self, figures: Mapping[str, Any]) -> None:
        """Ignore the figures."""


class Lines(NoProgress):
    """`12:00:01 CREATE_COMPLETE server_1`, one line an event, with the reason when something failed."""

    def __init__(self, console: Console) -> None:
        """Write to `console`."""
        self._console = console

    def take(self, event: Event) -> None:
        """Write the event."""
        self._console.print(line(event), soft_wrap=True)


class Tree(NoProgress):
    """The live tree; it stays on the screen as it was when the action ended."""

    def __init__(self, console: Console, board: ProgressModel) -> None:
        """Draw `board` on `console`."""
        self._board = board
        self._live = Live(
            Group(board), console=console, refresh_per_second=8, transient=False, vertical_overflow="crop"
        )

    def __enter__(self) -> Self:
        """Start drawing."""
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Draw for the last time."""
        self._live.stop()

    def take(self, event: Event) -> None:
        """Take the event onto the board."""
        self._board.take(event)

    def wants_plan(self) -> bool:
        """Once something happened, and again when something unknown turns up; a huge stack is not listed."""
        return self._board.incomplete()

    def plan(self, resources: list[dict[str, Any]]) -> None:
        """Put the resources into the tree."""
        self._board.plan(resources)

    def wants_counts(self) -> bool:
        """For what is too big to be listed."""
        return self._board.uncounted()

    def count(self, figures: Mapping[str, Any]) -> None:
        """Put the figures above the tree."""
        self._board.count(figures)


def counted(figures: Mapping[str, Any]) -> str:
    """Return the server's figures in words."""
    found = _by_status(figures)
    words = [f"{found['COMPLETE']} of {figures['total']} ready", f"{found['IN_PROGRESS']} running"]
    if found["FAILED"]:
        words.append(f"{found['FAILED']} failed")
    return ", ".join([*words, f"{found['']} to come"])


def _by_status(figures: Mapping[str, Any]) -> dict[str, int]:
    running = {"COMPLETE": figures["ready"], "IN_PROGRESS": figures["running"], "FAILED": figures["failed"]}
    return {**running, "": figures["waiting"] + figures["blocked"]}


def line(event: Event, around: str | None = None) -> Text:
    """Return an event as one line of text; of another stack than `around`, if that is said, with its name."""
    text = str(event["resource_status"])
    row = Text(render.clock(event.get("event_time")) + " ", style="dim")
    row.append_text(
        Text(
            clean(text),
            style="not dim " + next((s for e, s in render.STYLES.items() if text.endswith(e)), ""),
        )
    )
    row.append(f" {clean(_named(event, around))}", style="not dim")
    if text.endswith("_FAILED"):
        row.append(f": {one_line(event.get('resource_status_reason') or '')}", style="not dim")
    return row


def _named(event: Event, around: str | None) -> str:
    """Return whom an event is about; what a stack tells of itself is about the stack."""
    name = str(event["resource_name"])
    href = next((link["href"] for link in event.get("links") or () if link["rel"] == "stack"), "")
    stack, _, id_ = href.rpartition("/stacks/")[2].partition("/")
    stack = unquote(stack)
    if around is None or stack in {"", around} or event["physical_resource_id"] == id_:
        return name
    return f"{stack}.{name}"
