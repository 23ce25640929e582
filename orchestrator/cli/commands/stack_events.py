"""`orchestrator stack events`: the events of a stack, on request until the current action ends."""

from __future__ import annotations

import click

from orchestrator.cli.client.connection import StackId
from orchestrator.cli.exit_codes import Exit, Failure
from orchestrator.cli.options import Session, client_command, stack_argument
from orchestrator.cli.output.event_line import event_line
from orchestrator.cli.watch.follow import End, Event, follow, is_stack_event
from orchestrator.cli.watch.wait import failed


@click.command()
@stack_argument
@click.option(
    "--follow", "following", is_flag=True, is_eager=True, help="Continue until the action in progress ends."
)
@click.option("--resource", help="Only events of this resource.")
@click.option("--limit", type=click.IntRange(1), help="Maximum number of events, oldest first.")
@click.option(
    "--nested",
    type=click.IntRange(0),
    default=0,
    metavar="LEVELS",
    help="Include LEVELS levels of nested stacks.",
)
@click.option(
    "--wait-timeout",
    type=click.FloatRange(0),
    metavar="SECONDS",
    help="With --follow: stop after SECONDS, with exit code 4.",
)
@client_command
def events(
    session: Session,
    *,
    name: str,
    following: bool,
    resource: str | None,
    limit: int | None,
    nested: int,
    wait_timeout: float | None,
) -> None:
    """Print the events of a stack, oldest first.

    With --follow the exit code is that of `stack create --wait`; with --json each event is one line of JSON.
    """
    if following and (resource or limit):
        raise click.UsageError("--follow cannot be combined with --resource or --limit")
    if wait_timeout is not None and not following:
        raise click.UsageError("--wait-timeout has no effect without --follow")
    stack = session.client.stacks.find(name)
    if following:
        _Follow(session, stack, nested).run(wait_timeout)
        return
    entries = list(session.client.events.list_all(stack, resource=resource, limit=limit, nested=nested))
    if session.as_json:
        session.document({"events": entries})
        return
    out = session.out()
    for event in entries:
        out.print(event_line(event, stack.name), soft_wrap=True)
    if not entries:
        matches = f" of resource {resource}" if resource else ""
        session.say(f"Stack {stack.name} has no events{matches}.")


class _Follow:
    """Print the history, then new events until the action in progress ends."""

    def __init__(self, session: Session, stack: StackId, nested: int) -> None:
        self.session, self.stack, self.nested = session, stack, nested
        self.out = session.out()

    def run(self, timeout_seconds: float | None) -> None:
        """Print events.

        Raises:
            Failure: the action failed, the timeout expired, or Ctrl-C.
        """
        try:
            last, in_progress = self._history()
            end = self._new_events(last, timeout_seconds) if in_progress else self._current()
        except KeyboardInterrupt:
            raise Failure(
                f"interrupted; the action of stack {self.stack.name} continues", code=Exit.INTERRUPTED
            ) from None
        if end.failed:
            raise failed(self.stack, end)

    def _history(self) -> tuple[Event | None, bool]:
        """Print past events; return the last of them, and whether an action is in progress."""
        last: Event | None = None
        in_progress = True
        for event in self.session.client.events.list_all(self.stack, nested=self.nested):
            self._print(event)
            last = event
            if is_stack_event(event, self.stack):
                in_progress = str(event["resource_status"]).endswith("_IN_PROGRESS")
        return last, in_progress or self._current().status.endswith("_IN_PROGRESS")

    def _current(self) -> End:
        shown = self.session.client.stacks.show(self.stack, outputs=False)
        return End(shown["stack_status"], shown["stack_status_reason"])

    def _new_events(self, last: Event | None, timeout_seconds: float | None) -> End:
        steps = follow(
            self.session.client, self.stack, after=last, timeout_seconds=timeout_seconds, nested=self.nested
        )
        for step in steps:
            if isinstance(step, End):
                return step
            self._print(step)
        raise AssertionError("`follow` ends with an End or a Failure")

    def _print(self, event: Event) -> None:
        if self.session.as_json:
            self.session.line(event)
        else:
            self.out.print(event_line(event, self.stack.name), soft_wrap=True)
