"""`orchestrator stack export`, `abandon` and `adopt`: from a stack to a document and back."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import orjson

from orchestrator.cli.exit_codes import ApiFailure, Failure
from orchestrator.cli.options import (
    FILE,
    RequestOptions,
    Session,
    Wait,
    client_command,
    request_options,
    stack_argument,
    wait_options,
    yes_option,
)
from orchestrator.cli.template_files.load import Source, display_path, read_text, texts
from orchestrator.cli.watch.wait import finish

OUTPUT = click.option(
    "-o",
    "--output-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write to this file instead of standard output.",
)


@click.command()
@stack_argument
@OUTPUT
@client_command
def export(session: Session, *, name: str, output_file: Path | None) -> None:
    """Print a stack as a document for `adopt`."""
    document = session.client.stacks.export(session.client.stacks.find(name))
    if output_file is None:
        session.document(document)
    else:
        _require_writable(output_file)
        _write(output_file, document)
        session.say(f"Written to {output_file}.")


@click.command()
@stack_argument
@OUTPUT
@yes_option
@client_command
def abandon(session: Session, *, name: str, output_file: Path | None, yes: bool) -> None:
    """Delete a stack but keep all its resources at their providers.

    Prints the stack as a document, which `adopt` requires. It cannot be retrieved later.
    """
    if not yes and sys.stdin.isatty():
        click.confirm(f"Abandon {name} and keep its resources?", abort=True)
    stack = session.client.stacks.find(name)
    if output_file is not None:
        _require_writable(output_file)  # before the stack is deleted
    document = session.client.stacks.abandon(stack)
    if output_file is None:
        session.document(document)
        return
    try:
        _write(output_file, document)
    except Failure:
        session.document(document)  # the only copy
        raise
    session.say(f"Stack {stack.name} is abandoned; {output_file} describes its resources.")


@click.command()
@click.argument("name", metavar="STACK")
@click.option(
    "--adopt-file",
    type=FILE,
    required=True,
    help="Document from `abandon` or `export`; - reads standard input.",
)
@request_options
@wait_options
@client_command
def adopt(session: Session, *, name: str, adopt_file: Path, request: RequestOptions, wait: Wait) -> None:
    """Create a stack from existing resources.

    With --wait, the exit code is 3 if the adoption failed, and 4 after --wait-timeout.
    """
    data = read_text(adopt_file, "document")
    source = Source(display_path(adopt_file), "", {})
    body = request.body(source, stack_name=name, adopt_stack_data=data)
    del body["template"]
    try:
        stack, _ = session.client.stacks.create(body)
    except ApiFailure as refusal:
        raise refusal.explained(source.path, "", texts(request.environments, body)) from refusal
    finish(
        session, stack, wait, "ADOPT", None, f"Adoption of stack {name} ({stack.id}) started.", begins=False
    )


def _require_writable(path: Path) -> None:
    try:
        path.touch(mode=0o600)
        with path.open("ab"):
            pass
    except OSError as error:
        raise Failure(f"cannot write {path}: {error.strerror or error}") from error


def _write(path: Path, document: object) -> None:
    try:
        path.write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n")
    except OSError as error:
        raise Failure(f"cannot write {path}: {error.strerror or error}") from error
