"""`orchestrator validate`: the server's checks of a template, without creating anything."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click
import orjson

from orchestrator.cli.commands.stack_show import NO_DESCRIPTION
from orchestrator.cli.exit_codes import ApiFailure, Failure, in_source, one_line
from orchestrator.cli.options import ENVIRONMENT_OPTION, FILE, PARAMETER_OPTION, Session, client_command
from orchestrator.cli.output import render
from orchestrator.cli.template_files.load import read_template, request_body, texts
from orchestrator.json_types import JsonMapping

MAX_DEFAULT_CHARACTERS: Final = 60  # of a default in the table of parameters


@click.command()
@click.option(
    "-t",
    "--template",
    "template_file",
    type=FILE,
    required=True,
    help="Template file; - reads standard input.",
)
@ENVIRONMENT_OPTION
@PARAMETER_OPTION
@click.option(
    "--strict",
    is_flag=True,
    help="Require all that `stack create` requires: values of all parameters, quotas. Warnings are errors.",
)
@click.option(
    "--lenient",
    is_flag=True,
    help="Accept what Heat's validate accepts: errors of values, for which `stack create` is refused, are"
    " printed and do not change the exit code.",
)
@client_command
def validate(
    session: Session,
    *,
    template_file: Path,
    environments: tuple[Path, ...],
    parameters: JsonMapping,
    strict: bool,
    lenient: bool,
) -> None:
    """Validate a template without creating anything.

    Prints every error with its place, otherwise the parameters. The exit code is 1 if there are errors. The
    checks are those of `stack create`, except that parameters need no values.
    """
    if strict and lenient:
        raise click.UsageError("--strict and --lenient exclude each other")
    source = read_template(template_file)
    body = request_body(source, environments, parameters)
    environment_texts = texts(environments, body)
    try:
        result = session.client.stacks.validate(body)
        if strict:
            session.client.stacks.preview_create(body | {"stack_name": f"validate-{uuid.uuid4()}"})
    except ApiFailure as refusal:
        raise refusal.explained(source.path, source.text, environment_texts) from refusal
    errors, warnings = result.get("errors") or [], result.get("warnings") or []
    shown = in_source([*errors, *warnings], source.path, source.text, environment_texts)
    found = [*_count(errors, "error"), *_count(warnings, "warning")]
    if (errors and not lenient) or (warnings and strict):
        message = f"{source.path} is not valid: {', '.join(found)}"
        raise Failure(message, details=shown, facts={"errors": errors, "warnings": warnings})
    if session.as_json:
        session.document(result)
        return
    for line in shown:
        click.echo(line, err=True)
    if errors:
        session.say(f"`stack create` would refuse {source.path}: {', '.join(found)}.")
    else:
        session.say(f"{source.path} is valid{f', with {found[0]}' if found else ''}.")
    _describe(session, result)


def _describe(session: Session, result: JsonMapping) -> None:
    """Print the description and the parameters of a template."""
    description = str(result.get("Description") or "").strip()
    if description and description != NO_DESCRIPTION:
        session.say(description)
    if declared := result.get("Parameters"):
        rows = (
            (name, declaration.get("Type", ""), _default(declaration), declaration.get("Description", ""))
            for name, declaration in declared.items()
        )
        render.table(session.out(), ("PARAMETER", "TYPE", "DEFAULT", "DESCRIPTION"), rows)
    for group in result.get("ParameterGroups") or ():
        label = one_line(group.get("label") or "Parameters")
        session.say(f"{label}: {one_line(', '.join(map(str, group.get('parameters') or ())))}")


def _count(faults: Sequence[JsonMapping], word: str) -> list[str]:
    return [f"{len(faults)} {word}{'s' if len(faults) != 1 else ''}"] if faults else []


def _default(parameter: JsonMapping) -> str:
    if "Default" not in parameter:
        return "(required)"
    if parameter.get("NoEcho") == "true":
        return "******"
    default = parameter["Default"]
    text = one_line(default if isinstance(default, str) else orjson.dumps(default).decode())
    if len(text) > MAX_DEFAULT_CHARACTERS:  # a column is as wide as its longest cell
        return f"{text[:MAX_DEFAULT_CHARACTERS]}…"
    return text.lower() if parameter.get("Type") == "Boolean" else text  # the API writes `True`
