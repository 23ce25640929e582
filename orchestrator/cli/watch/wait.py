"""Wait for the end of an action, and report its result."""

from __future__ import annotations

from typing import Final

import click

from orchestrator.cli.client.connection import StackId
from orchestrator.cli.exit_codes import Exit, Failure, one_line
from orchestrator.cli.options import Session, Wait
from orchestrator.cli.output import render
from orchestrator.cli.watch.follow import End, Event, follow
from orchestrator.cli.watch.model import ProgressModel
from orchestrator.cli.watch.progress import Lines, NoProgress, Progress, Tree

ALL_LEVELS: Final = 100  # of nested stacks; servers allow fewer


def newest_event(session: Session, stack: StackId, wait: Wait) -> Event | None:
    """Return the event after which an action begins, if the command waits for the action."""
    return session.client.events.newest(stack) if wait else None


def finish(
    session: Session,
    stack: StackId,
    wait: Wait,
    action: str,
    after: Event | None,
    *sentences: str,
    begins: bool = True,
) -> None:
    """After the request for an action: wait for its end, or report its start with `sentences`.

    See `watch` for `after` and `begins`.
    """
    if wait:
        conclude(session, stack, watch(session, stack, action, after, wait.timeout_seconds, begins=begins))
    elif session.as_json:
        session.document(session.client.stacks.show(stack, outputs=False))
    elif session.quiet:
        click.echo(stack.id)
    else:
        for sentence in sentences:
            session.say(sentence)


def watch(
    session: Session,
    stack: StackId,
    action: str,
    after: Event | None,
    timeout_seconds: float | None,
    *,
    begins: bool = True,
    several: bool = False,
) -> End:
    """Follow an action to its end and display its progress; lines name the stack of one of `several`.

    The action `begins` after the event `after`; otherwise it is in progress already.
    """
    progress: Progress
    if session.quiet:
        progress = NoProgress()
    elif session.interactive:
        progress = Tree(session.progress(), ProgressModel(stack, action))
    else:
        progress = Lines(session.progress(), "" if several else stack.name)
    client = session.client
    steps = follow(
        client,
        stack,
        after=after,
        action=action if begins else None,
        timeout_seconds=timeout_seconds,
        nested=ALL_LEVELS,
    )
    try:
        with progress:
            for step in steps:
                if isinstance(step, End):
                    return step
                progress.add_event(step)
                if progress.wants_counts():
                    progress.set_counts(client.diagnosis.progress(stack))
                if progress.wants_resources():
                    progress.add_resources(client.resources.list_all(stack))
    except KeyboardInterrupt:
        raise Failure(
            f"interrupted; the {action} of stack {stack.name} continues",
            code=Exit.INTERRUPTED,
            details=[f"  follow it with: orchestrator stack events {stack.name} --follow"],
        ) from None
    raise AssertionError("`follow` ends with an End or a Failure")


def conclude(session: Session, stack: StackId, end: End) -> None:
    """Print the result of an action.

    Raises:
        Failure: the action failed.
    """
    if end.failed:
        raise failed(stack, end)
    if session.as_json:
        session.document(session.client.stacks.show(stack))
        return
    if session.quiet:
        click.echo(stack.id)
        return
    out = session.out()
    out.print(render.status(end.status), f"{stack.name} ({stack.id})", soft_wrap=True)
    if results := session.client.stacks.outputs(stack):
        session.say("Outputs")
        render.outputs(out, results)


def failed(stack: StackId, end: End) -> Failure:
    """Return the failure of an action, with all causes and the result of its rollback."""
    cause = end.rolled_back or end
    message = f"stack {stack.name} is {end.status}: {cause.reason}"
    whole = one_line(cause.reason)  # often the reason of one resource: that is not repeated
    causes = [(name, one_line(reason)) for name, reason in end.causes.items()]
    details = [f"  {name}: {reason}" for name, reason in causes if not whole.endswith(f".{name}: {reason}")]
    facts = {
        "stack_name": stack.name,
        "stack_id": stack.id,
        "stack_status": end.status,
        "reason": cause.reason,
        "causes": [{"resource_name": name, "reason": reason} for name, reason in end.causes.items()],
    }
    if end.rolled_back is not None:
        result = (
            "succeeded" if end.status == "ROLLBACK_COMPLETE" else f"ended with {end.status}: {end.reason}"
        )
        action = cause.status.partition("_")[0]
        message = f"the {action} of stack {stack.name} failed: {cause.reason}; the rollback {result}"
        facts |= {"failed_status": cause.status, "rollback_reason": end.reason}
    return Failure(message, code=Exit.STACK_FAILED, details=details, facts=facts)
