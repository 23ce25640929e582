"""The display of an action's progress: a live tree on a terminal, a line per event in a pipe."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Final, Protocol, Self

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from orchestrator.cli.output.event_line import counts_text, event_line, remaining
from orchestrator.cli.watch.follow import Event
from orchestrator.cli.watch.model import ProgressModel
from orchestrator.json_types import JsonMapping, JsonObject

SUMMARY_SECONDS: Final = 10.0  # between two lines with counts


class Progress(Protocol):
    """A display."""

    def __enter__(self) -> Self:
        """Begin."""

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End."""

    def add_event(self, event: Event) -> None:
        """Show an event."""

    def wants_resources(self) -> bool:
        """Whether the display needs the resource list now."""

    def add_resources(self, resources: list[JsonObject]) -> None:
        """Receive the resource list."""

    def wants_counts(self) -> bool:
        """Whether the display needs the server's counts now."""

    def set_counts(self, progress: JsonMapping) -> None:
        """Receive the server's counts."""


class NoProgress:
    """No display, for --quiet."""

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End."""

    def add_event(self, event: Event) -> None:
        """Ignore the event."""

    def wants_resources(self) -> bool:
        """Never."""
        return False

    def add_resources(self, resources: list[JsonObject]) -> None:
        """Ignore the list."""

    def wants_counts(self) -> bool:
        """Never."""
        return False

    def set_counts(self, progress: JsonMapping) -> None:
        """Ignore the counts."""


class Lines(NoProgress):
    """A line per event, and at most every SUMMARY_SECONDS a line with counts and remaining time."""

    def __init__(self, console: Console, stack: str) -> None:
        """Write to `console`; resources of stacks other than `stack` are shown with their stack."""
        self._console = console
        self._stack = stack
        self._began = self._summary_at = time.monotonic()

    def add_event(self, event: Event) -> None:
        """Write the event."""
        self._console.print(event_line(event, self._stack), soft_wrap=True)

    def wants_counts(self) -> bool:
        """Whether SUMMARY_SECONDS have passed since the last line with counts."""
        return time.monotonic() - self._summary_at >= SUMMARY_SECONDS

    def set_counts(self, progress: JsonMapping) -> None:
        """Write the counts and the remaining time."""
        now = time.monotonic()
        self._summary_at = now
        if progress.get("total"):
            done = progress["ready"] + progress["failed"]
            remaining_seconds = remaining(now - self._began, done, progress["total"])
            self._console.print(
                Text(f"-- {counts_text(progress, remaining_seconds)}", style="dim"), soft_wrap=True
            )


class Tree(NoProgress):
    """The live tree; its last state stays on the screen."""

    def __init__(self, console: Console, model: ProgressModel) -> None:
        """Draw `model` on `console`."""
        self._model = model
        self._live = Live(
            Group(model), console=console, refresh_per_second=8, transient=False, vertical_overflow="crop"
        )

    def __enter__(self) -> Self:
        """Start to draw."""
        self._live.start()
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Draw the last state."""
        self._live.stop()

    def add_event(self, event: Event) -> None:
        """Update the tree."""
        self._model.add_event(event)

    def wants_resources(self) -> bool:
        """See `ProgressModel.wants_resources`."""
        return self._model.wants_resources()

    def add_resources(self, resources: list[JsonObject]) -> None:
        """Put the resources into the tree."""
        self._model.add_resources(resources)

    def wants_counts(self) -> bool:
        """See `ProgressModel.wants_counts`."""
        return self._model.wants_counts()

    def set_counts(self, progress: JsonMapping) -> None:
        """Show the counts in the header."""
        self._model.set_counts(progress)
