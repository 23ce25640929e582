"""`orchestrator validate`: ask the server about a template; all its faults at once, and nothing is made."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import orjson

from orchestrator.cli.exit_codes import ApiFailure, ExitOneOnUsage, in_source
from orchestrator.cli.options import FILE, Session, client_command, pairs
from orchestrator.cli.output import render
from orchestrator.cli.template_files.load import read_template, request_body, texts


@click.command(cls=ExitOneOnUsage)
@click.option("-t", "--template", "template_file", type=FILE, required=True, help="The template.")
@click.option(
    "-e", "--environment", "environments", type=FILE, multiple=True, help="Later ones win; repeatable."
)
@click.option(
    "-P", "--parameter", "parameters", multiple=True, callback=pairs, metavar="NAME=VALUE", help="Repeatable."
)
@client_command
def validate(
    session: Session, *, template_file: Path, environments: tuple[Path, ...], parameters: Mapping[str, Any]
) -> None:
    """Check a template without making anything; list its parameters.

    Exits 1 when the server would refuse the template, with every fault and its place. Warnings tell what a
    create might refuse: values are not looked at strictly here, for they may not be known.
    """
    source = read_template(template_file)
    body = request_body(source, environments, parameters)
    try:
        found = session.client.validate(body)
    except ApiFailure as refusal:
        raise refusal.explained(template_file, source.text, texts(environments, body)) from refusal
    if session.as_json:
        session.document(found)
        return
    warnings = found.get("warnings") or []
    for line in in_source(warnings, template_file, source.text, texts(environments, body)):
        click.echo(line, err=True)
    count = f", with {len(warnings)} warning{'s' if len(warnings) != 1 else ''}" if warnings else ""
    session.say(f"{template_file} is valid{count}.")
    if about := str(found.get("Description") or "").strip():
        session.say(about)
    if known := found.get("Parameters"):
        rows = (
            (name, one.get("Type", ""), _default(one), one.get("Description", ""))
            for name, one in known.items()
        )
        render.table(session.out(), ("PARAMETER", "TYPE", "DEFAULT", "DESCRIPTION"), rows)


def _default(parameter: Mapping[str, Any]) -> str:
    if "Default" not in parameter:
        return "(required)"
    hidden = parameter.get("NoEcho") == "true"
    default = parameter["Default"]
    return "******" if hidden else default if isinstance(default, str) else orjson.dumps(default).decode()
