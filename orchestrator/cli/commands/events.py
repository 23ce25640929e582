"""`orchestrator events`: what happens in all stacks of a project."""

from __future__ import annotations

from collections.abc import Iterator

import click

from orchestrator.cli.client.api_client import Client
from orchestrator.cli.exit_codes import Exit, Failure
from orchestrator.cli.options import Session, client_command
from orchestrator.cli.watch.event_feed import Event, of_project
from orchestrator.cli.watch.progress import line


@click.command()
@click.option("--follow", "following", is_flag=True, help="Go on with what comes, until interrupted.")
@click.option("--nested", type=click.IntRange(0), default=0, help="Of so many levels of nested stacks too.")
@click.option(
    "--after",
    metavar="SEQUENCE",
    help="Only what came after this event; now: what comes. Else from the first, with --follow from now.",
)
@client_command
def events(session: Session, *, following: bool, nested: int, after: str | None) -> None:
    """Tell what happened in all stacks of the project, in the order in which it did.

    With --json every event is a line of JSON; its `sequence` is what --after takes.
    """
    out = session.out()
    if following:
        told = of_project(session.client, after or "now", nested)
    else:
        told = _listed(session.client, after or "0.0", nested)
    try:
        for event in told:
            if session.as_json:
                session.line(event)
            else:
                out.print(line(event, ""), soft_wrap=True)
    except KeyboardInterrupt:
        raise Failure("stopped watching", code=Exit.INTERRUPTED) from None


def _listed(client: Client, after: str, nested: int) -> Iterator[Event]:
    more = True
    while more:
        page = client.project_events(after, nested)
        yield from page["events"]
        after, more = str(page["sequence"]), page["more"]
