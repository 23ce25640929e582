"""`orchestrator events`: the events of all stacks of a project."""

from __future__ import annotations

from collections.abc import Iterator

import click

from orchestrator.cli.client.api_client import Client
from orchestrator.cli.options import Session, client_command
from orchestrator.cli.output.event_line import event_line
from orchestrator.cli.watch.event_feed import Event, of_project


@click.command()
@click.option("--follow", "following", is_flag=True, help="Continue with new events until Ctrl-C.")
@click.option(
    "--nested",
    type=click.IntRange(0),
    default=0,
    metavar="LEVELS",
    help="Include LEVELS levels of nested stacks.",
)
@click.option(
    "--after",
    metavar="SEQUENCE",
    help="Only events after this sequence; now: only new events.  [default: all events; with --follow: now]",
)
@client_command
def events(session: Session, *, following: bool, nested: int, after: str | None) -> None:
    """Print the events of all stacks of the project.

    With --json each event is one line of JSON; its field sequence is a value for --after.
    """
    if following:
        entries = of_project(session.client, after or "now", nested)
    else:
        entries = _listed(session.client, after or "0.0", nested)
    out, empty = session.out(), True
    for event in entries:
        empty = False
        if session.as_json:
            session.line(event)
        else:
            out.print(event_line(event, ""), soft_wrap=True)
    if empty:
        session.say(f"Project {session.project} has no events{f' after {after}' if after else ''}.")


def _listed(client: Client, after: str, nested: int) -> Iterator[Event]:
    has_more = True
    while has_more:
        page = client.events.of_project(after, nested)
        yield from page["events"]
        after, has_more = str(page["sequence"]), page["more"]
