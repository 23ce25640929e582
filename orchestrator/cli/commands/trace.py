"""`orchestrator trace`: an action of a stack and its nested stacks as a trace for Perfetto."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import click
import orjson

from orchestrator.cli.client.connection import StackId
from orchestrator.cli.exit_codes import ApiFailure, Failure
from orchestrator.cli.options import Session, client_command, stack_argument
from orchestrator.cli.output.trace import trace_document
from orchestrator.json_types import JsonMapping

MAX_BARS: Final = 100_000  # of a file
MAX_STACKS: Final = 1_000  # nested stacks of a file, with a request each
OWNERS: Final = 50  # of a list of nested stacks; their ids are in the address
NOT_FOUND: Final = 404


@dataclass(slots=True)
class Tree:
    """The timelines of nested stacks, and the room for further operations."""

    room: int
    timelines: list[tuple[str, JsonMapping]] = field(default_factory=list)
    is_complete: bool = True

    def add(self, name: str, timeline: JsonMapping) -> None:
        """Take a timeline, if there is room."""
        if timeline["lanes"]:
            self.is_complete = False
            return
        self.room -= timeline["count"]
        self.timelines.append((name, timeline))


@click.command()
@stack_argument
@click.option(
    "--revision", type=int, metavar="NUMBER", help="Action of this revision.  [default: the last action]"
)
@click.option(
    "-o",
    "--output",
    "file",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    help="File to write; - is standard output.  [default: STACK.trace.json]",
)
@client_command
def trace(session: Session, *, name: str, revision: int | None, file: Path | None) -> None:
    """Write the last action of a stack as a trace for Perfetto.

    Open the file with https://ui.perfetto.dev. Each resource has a slice with its phases: queued, at the
    provider, waiting for ready. Nested stacks that took part in the action are their own processes, at
    most 1,000. The file has at most 100,000 operations; larger nested stacks are left out, with a warning.
    With --revision it has the stack only.
    """
    stack = session.client.stacks.find(name)
    timeline = session.client.diagnosis.timeline(stack, revision, MAX_BARS)
    if timeline["lanes"]:
        raise Failure(f"the action has {timeline['count']} operations; the maximum is {MAX_BARS}")
    tree = Tree(MAX_BARS - timeline["count"])
    if revision is None:
        _add_nested(session, stack, timeline["begun_at"], tree)
    if not tree.is_complete:
        click.echo("Warning: the trace is full. Some nested stacks are left out.", err=True)
    data = orjson.dumps(trace_document(timeline, tree.timelines))
    if file is not None and str(file) == "-":
        sys.stdout.buffer.write(data)
        return
    path = file or Path(f"{stack.name}.trace.json")
    try:
        path.write_bytes(data)
    except OSError as error:
        raise Failure(f"cannot write {path}: {error.strerror}") from error
    count = timeline["count"] + sum(item["count"] for _, item in tree.timelines)
    session.say(f"Wrote {count} operations to {path}. Open it with https://ui.perfetto.dev.")


def _add_nested(session: Session, root: StackId, begun_at: str, tree: Tree) -> None:
    """Add the actions of nested stacks that began with the action of the root or later."""
    for nth, stack in enumerate(_nested(session, root)):
        if nth >= MAX_STACKS or tree.room < 1:
            tree.is_complete = False
            return
        try:
            timeline = session.client.diagnosis.timeline(stack, None, tree.room)
        except ApiFailure as error:
            if error.status != NOT_FOUND:  # deleted meanwhile, or without an action
                raise
            continue
        if timeline["begun_at"] >= begun_at:
            tree.add(stack.name, timeline)


def _nested(session: Session, root: StackId) -> Iterator[StackId]:
    """Yield the nested stacks of a stack, level by level."""
    level = [root]
    while level:
        below = []
        for start in range(0, len(level), OWNERS):
            owners = [stack.id for stack in level[start : start + OWNERS]]
            query: dict[str, str | int | list[str]] = {
                "owner_id": owners,
                "show_nested": "true",
                "show_hidden": "true",
            }
            found = session.client.stacks.list_all(query)
            for row in found:
                below.append(StackId(row["stack_name"], row["id"]))
                yield below[-1]
        level = below
