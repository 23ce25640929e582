"""`orchestrator stack export`, `abandon` and `adopt`: a stack as a document, and a document as a stack."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import orjson

from orchestrator.cli.exit_codes import ApiFailure, Failure
from orchestrator.cli.options import FILE, Session, client_command, request_options, wait_options
from orchestrator.cli.template_files.load import Source, request_body, texts
from orchestrator.cli.watch.wait import begun, conclude, watch

OUTPUT = click.option(
    "-o", "--output-file", type=click.Path(dir_okay=False, path_type=Path), help="Instead of standard output."
)


@click.command()
@click.argument("name")
@OUTPUT
@client_command
def export(session: Session, *, name: str, output_file: Path | None) -> None:
    """Print the stack NAME as a document, from which `adopt` makes another."""
    document = session.client.export(session.client.find(name))
    if output_file is None:
        session.document(document)
    else:
        _writable(output_file)
        _written(output_file, document)
        session.say(f"Written to {output_file}.")


@click.command()
@click.argument("name")
@OUTPUT
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@client_command
def abandon(session: Session, *, name: str, output_file: Path | None, yes: bool) -> None:
    """Let go of the stack NAME and leave everything it made where it is; print it as a document.

    The document is what `adopt` needs, and is told only this once.
    """
    if not yes and sys.stdin.isatty():
        click.confirm(f"Let go of {name} and everything in it?", abort=True)
    found = session.client.find(name)
    if output_file is not None:
        _writable(output_file)  # before there is nothing left to ask for
    document = session.client.abandon(found)
    if output_file is None:
        session.document(document)
    else:
        try:
            _written(output_file, document)
        except Failure:
            session.document(document)  # nobody can ask for it again
            raise
        session.say(f"Stack {found.name} is let go of; {output_file} has what was in it.")


@click.command()
@click.argument("name")
@click.option(
    "--adopt-file", "adopt_file", type=FILE, required=True, help="What `abandon` or `export` printed."
)
@request_options
@wait_options
@client_command
def adopt(
    session: Session,
    *,
    name: str,
    adopt_file: Path,
    environments: tuple[Path, ...],
    parameters: Mapping[str, Any],
    timeout_mins: int | None,
    tags: tuple[str, ...],
    rollback: bool | None,
    keep_going: bool | None,
    wait: bool,
    wait_timeout: float | None,
) -> None:
    """Make the stack NAME of things that are there already.

    Exits 3 when the stack fails, 4 when --wait-timeout runs out first.
    """
    try:
        data = adopt_file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(f"cannot read {adopt_file}: {error}") from error
    body = request_body(
        Source(adopt_file, "", {}),
        environments,
        parameters,
        stack_name=name,
        adopt_stack_data=data,
        timeout_mins=timeout_mins,
        tags=",".join(tags) or None,
        disable_rollback=None if rollback is None else not rollback,
        keep_going=keep_going,
    )
    del body["template"]
    try:
        made = session.client.create(body)
    except ApiFailure as refusal:
        raise refusal.explained(adopt_file, "", texts(environments, body)) from refusal
    if wait:
        conclude(session, made, watch(session, made, "ADOPT", None, wait_timeout, begins=False))
    else:
        begun(session, made, f"Stack {name} ({made.id}) is being adopted.")


def _writable(path: Path) -> None:
    try:
        path.touch(mode=0o600)
        with path.open("ab"):
            pass
    except OSError as error:
        raise Failure(f"cannot write {path}: {error.strerror or error}") from error


def _written(path: Path, document: object) -> None:
    try:
        path.write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n")
    except OSError as error:
        raise Failure(f"cannot write {path}: {error.strerror or error}") from error
