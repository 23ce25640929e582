"""`orchestrator stack create` and `update`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from orchestrator.cli.client.connection import StackId
from orchestrator.cli.exit_codes import ApiFailure, Failure, in_source
from orchestrator.cli.options import (
    FILE,
    RequestOptions,
    Session,
    Wait,
    client_command,
    only_with,
    preview_options,
    request_options,
    stack_argument,
    wait_options,
)
from orchestrator.cli.output import preview as previews
from orchestrator.cli.template_files.load import Source, read_template, texts
from orchestrator.cli.watch.wait import finish, newest_event
from orchestrator.errors import did_you_mean


@click.command()
@click.argument("name", metavar="STACK")
@click.option(
    "-t",
    "--template",
    "template_file",
    type=FILE,
    required=True,
    help="Template file; - reads standard input.",
)
@preview_options
@request_options
@wait_options
@client_command
def create(
    session: Session,
    *,
    name: str,
    template_file: Path,
    preview: bool,
    detailed_exitcode: bool,
    request: RequestOptions,
    wait: Wait,
) -> None:
    """Create a stack from a template.

    With --wait, the exit code is 3 if the creation failed (after its rollback, if enabled), and 4 after
    --wait-timeout. With --preview nothing is created; the server makes the same checks.
    """
    previews.refuse_waiting(preview=preview, wait=wait)
    source = read_template(template_file)
    body = request.body(source, stack_name=name)
    try:
        if preview:
            shown, warnings = session.client.stacks.preview_create(body)
        else:
            stack, warnings = session.client.stacks.create(body)
    except ApiFailure as refusal:
        raise refusal.explained(source.path, source.text, texts(request.environments, body)) from refusal
    _warn(source, warnings, texts(request.environments, body))
    if preview:
        previews.show(session, shown, detailed_exitcode=detailed_exitcode)
        return
    sentences = (
        f"Creation of stack {name} ({stack.id}) started.",
        f"Follow it with: orchestrator stack events {name} --follow",
    )
    finish(session, stack, wait, "CREATE", None, *sentences, begins=False)


@click.command()
@stack_argument
@click.option(
    "-t",
    "--template",
    "template_file",
    type=FILE,
    help="Template file; - reads standard input. Optional with --existing.",
)
@click.option(
    "--existing",
    is_flag=True,
    is_eager=True,
    help="Keep template, environment and parameters that are not given.",
)
@click.option(
    "--clear-parameter",
    "cleared",
    multiple=True,
    metavar="NAME",
    callback=only_with("--existing"),
    help="With --existing: return a parameter to its default; repeatable.",
)
@click.option(
    "--converge", is_flag=True, help="Observe all resources at their providers, and repair differences."
)
@preview_options
@request_options
@wait_options
@client_command
def update(
    session: Session,
    *,
    name: str,
    template_file: Path | None,
    existing: bool,
    cleared: tuple[str, ...],
    converge: bool,
    preview: bool,
    detailed_exitcode: bool,
    request: RequestOptions,
    wait: Wait,
) -> None:
    """Update a stack, even during another action.

    With --wait, the exit code is 3 if the update failed (after its rollback, if enabled), and 4 after
    --wait-timeout. With --preview nothing is changed; the server makes the same checks.
    """
    previews.refuse_waiting(preview=preview, wait=wait)
    if template_file is None and not existing:
        raise click.UsageError("give a template with -t, or keep the stack's template with --existing")
    source = read_template(template_file) if template_file is not None else Source(Path(name), "", {})
    body = request.body(source, clear_parameters=list(cleared) or None, converge=converge or None)
    if template_file is None:
        del body["template"]
    stacks = session.client.stacks
    stack = stacks.find(name)
    if existing:
        _refuse_unknown_parameters(session, stack, body, cleared)
    newest = newest_event(session, stack, wait)
    try:
        if preview:
            shown, warnings = stacks.preview_update(stack, body, existing=existing)
        else:
            warnings = stacks.update(stack, body, existing=existing)
    except ApiFailure as refusal:
        raise refusal.explained(source.path, source.text, texts(request.environments, body)) from refusal
    _warn(source, warnings, texts(request.environments, body))
    if preview:
        previews.show(session, shown, detailed_exitcode=detailed_exitcode)
        return
    finish(session, stack, wait, "UPDATE", newest, f"Update of stack {stack.name} ({stack.id}) started.")


def _warn(
    source: Source, warnings: Sequence[Mapping[str, Any]], other_texts: Mapping[str, tuple[str, str]]
) -> None:
    """Print the warnings of an accepted request to standard error."""
    for line in in_source(warnings, source.path, source.text, other_texts):
        click.echo(line, err=True)


def _refuse_unknown_parameters(
    session: Session, stack: StackId, body: Mapping[str, Any], cleared: Sequence[str]
) -> None:
    """Refuse names of parameters that an update with --existing would ignore, as Heat does.

    Raises:
        Failure: neither the stack nor a new template has a parameter of this name.
    """
    names = [*body.get("parameters", {}), *cleared]
    if not names:
        return
    known = {*session.client.stacks.show(stack, outputs=False).get("parameters", {})}
    if "template" in body:
        request = {key: body[key] for key in ("template", "files") if key in body}
        known |= session.client.stacks.validate(request).get("Parameters", {}).keys()
    for name in names:
        if name not in known:
            hints = [f"  {hint}"] if (hint := did_you_mean(name, known)) else []
            raise Failure(f"stack {stack.name} has no parameter {name}", details=hints)
