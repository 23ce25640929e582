"""`orchestrator validate`: the server's checks of a template, without creating anything."""

from __future__ import annotations

import uuid
from pathlib import Path

import click
import orjson

from orchestrator.cli.exit_codes import ApiFailure, Failure, in_source
from orchestrator.cli.options import ENVIRONMENT_OPTION, FILE, PARAMETER_OPTION, Session, client_command
from orchestrator.cli.output import render
from orchestrator.cli.template_files.load import read_template, request_body, texts
from orchestrator.json_types import JsonMapping


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
    help="Make all checks of `stack create`: required parameters, property values, limits."
    " Warnings are errors.",
)
@client_command
def validate(
    session: Session,
    *,
    template_file: Path,
    environments: tuple[Path, ...],
    parameters: JsonMapping,
    strict: bool,
) -> None:
    """Validate a template without creating anything.

    Prints every error with its place, otherwise the parameters. The exit code is 1 if there are errors.
    Without
    --strict, values that `stack create` might refuse are warnings, because parameters may be missing.
    """
    source = read_template(template_file)
    body = request_body(source, environments, parameters)
    environment_texts = texts(environments, body)
    try:
        result = session.client.stacks.validate(body)
        if strict:
            session.client.stacks.preview_create(body | {"stack_name": f"validate-{uuid.uuid4()}"})
    except ApiFailure as refusal:
        raise refusal.explained(source.path, source.text, environment_texts) from refusal
    warnings = result.get("warnings") or []
    shown = in_source(warnings, source.path, source.text, environment_texts)
    count = f"{len(warnings)} warning{'s' if len(warnings) != 1 else ''}"
    if strict and warnings:
        raise Failure(f"{source.path} is not valid: {count}", details=shown, facts={"warnings": warnings})
    if session.as_json:
        session.document(result)
        return
    for line in shown:
        click.echo(line, err=True)
    session.say(f"{source.path} is valid{f', with {count}' if warnings else ''}.")
    if description := str(result.get("Description") or "").strip():
        session.say(description)
    if declared := result.get("Parameters"):
        rows = (
            (name, declaration.get("Type", ""), _default(declaration), declaration.get("Description", ""))
            for name, declaration in declared.items()
        )
        render.table(session.out(), ("PARAMETER", "TYPE", "DEFAULT", "DESCRIPTION"), rows)


def _default(parameter: JsonMapping) -> str:
    if "Default" not in parameter:
        return "(required)"
    if parameter.get("NoEcho") == "true":
        return "******"
    default = parameter["Default"]
    text = default if isinstance(default, str) else orjson.dumps(default).decode()
    return text.lower() if parameter.get("Type") == "Boolean" else text  # the API writes `True`
