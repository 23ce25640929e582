"""Follow an action from the command line to its end, and say how it ended."""

from __future__ import annotations

import click

from orchestrator.cli.client.api_client import StackId
from orchestrator.cli.exit_codes import Exit, Failure
from orchestrator.cli.options import Session
from orchestrator.cli.output import render
from orchestrator.cli.watch.follow import End, Event, follow
from orchestrator.cli.watch.progress import Lines, NoProgress, Progress, ProgressModel, Tree


def watch(
    session: Session,
    found: StackId,
    action: str,
    after: Event | None,
    timeout: float | None,
    *,
    begins: bool = True,
) -> End:
    """Follow an action to its end, telling of it as the session wants.

    It `begins` after the event `after`, or else is under way already.
    """
    progress: Progress
    if session.quiet:
        progress = NoProgress()
    elif session.watched:
        progress = Tree(session.progress(), ProgressModel(found, action))
    else:
        progress = Lines(session.progress())
    try:
        with progress:
            whose = action if begins else None
            steps = follow(session.client, found, after=after, action=whose, timeout_seconds=timeout)
            for step in steps:
                if isinstance(step, End):
                    return step
                progress.take(step)
                if progress.wants_counts():
                    progress.count(session.client.progress(found))
                if progress.wants_plan():
                    progress.plan(session.client.resources(found))
    except KeyboardInterrupt:
        raise Failure(
            f"stopped watching; the {action} of stack {found.name} goes on by itself",
            code=Exit.INTERRUPTED,
            details=[f"  look again with: orchestrator stack events {found.name} --follow"],
        ) from None
    raise AssertionError("following ends with an End or a Failure")


def begun(session: Session, found: StackId, *sentences: str) -> None:
    """Say that an action goes on without us: the stack as it is now, its id, or these sentences."""
    if session.as_json:
        session.document(session.client.show(found, outputs=False))
    elif session.quiet:
        click.echo(found.id)
    else:
        for sentence in sentences:
            session.say(sentence)


def conclude(session: Session, found: StackId, end: End) -> None:
    """Print how an action ended and what came out of it."""
    if end.failed:
        raise failed(found, end)
    if session.as_json:
        session.document(session.client.show(found))
        return
    if session.quiet:
        click.echo(found.id)
        return
    out = session.out()
    out.print(render.status(end.status), f"{found.name} ({found.id})", soft_wrap=True)
    if results := session.client.outputs(found):
        session.say("Outputs")
        render.outputs(out, results)


def failed(found: StackId, end: End) -> Failure:
    """Return the failure of a stack, with every cause."""
    return Failure(
        f"stack {found.name} is {end.status}: {end.reason}",
        code=Exit.STACK_FAILED,
        details=[f"  {name}: {reason}" for name, reason in end.causes.items()],
        facts={
            "stack_name": found.name,
            "stack_id": found.id,
            "stack_status": end.status,
            "reason": end.reason,
            "causes": [{"resource_name": name, "reason": reason} for name, reason in end.causes.items()],
        },
    )
