"""`orchestrator trace`: an action of a stack as a trace for Perfetto."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import click
import orjson

from orchestrator.cli.options import Session, client_command, stack_argument
from orchestrator.cli.output.trace import trace_document

MAX_BARS: Final = 100_000


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
    provider, waiting for ready. Nested stacks have traces of their own. Actions with more than 100,000
    operations have no trace.
    """
    stack = session.client.stacks.find(name)
    timeline = session.client.diagnosis.timeline(stack, revision, MAX_BARS)
    if timeline["lanes"]:
        raise click.ClickException(
            f"the action has {timeline['count']} operations; the maximum is {MAX_BARS}"
        )
    data = orjson.dumps(trace_document(timeline))
    if file is not None and str(file) == "-":
        sys.stdout.buffer.write(data)
        return
    path = file or Path(f"{stack.name}.trace.json")
    try:
        path.write_bytes(data)
    except OSError as error:
        raise click.ClickException(f"cannot write {path}: {error.strerror}") from error
    session.say(f"Wrote {timeline['count']} operations to {path}. Open it with https://ui.perfetto.dev.")
