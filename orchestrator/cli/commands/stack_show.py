"""`orchestrator stack list`, `show`, `outputs` and `template`."""

from __future__ import annotations

from typing import Final

import click

from orchestrator.cli.argument_values import Keyword, describe
from orchestrator.cli.client.connection import StackId
from orchestrator.cli.exit_codes import Failure
from orchestrator.cli.options import Session, client_command, stack_argument
from orchestrator.cli.output import render
from orchestrator.cli.output.event_line import counts_text
from orchestrator.engine.states import STATUSES
from orchestrator.json_types import JsonMapping

ACTIONS: Final = (
    "INIT", "CREATE", "UPDATE", "ROLLBACK", "DELETE", "ADOPT", "CHECK", "SUSPEND", "RESUME", "SNAPSHOT",
    "RESTORE",
)  # fmt: skip
NO_DESCRIPTION: Final = "No description"  # of a template without one, as in Heat
STACK_STATUSES: Final = (*STATUSES, *(f"{action}_{status}" for action in ACTIONS for status in STATUSES))


@click.command("list")
@click.option("--deleted", is_flag=True, help="Include deleted stacks.")
@click.option("--nested", is_flag=True, help="Include nested stacks.")
@click.option(
    "--status",
    "statuses",
    type=Keyword("status", STACK_STATUSES),
    multiple=True,
    metavar="STATUS",
    help="Only stacks with this status, for example CREATE_FAILED or FAILED; repeatable.",
)
@click.option("--tag", "tags", multiple=True, help="Only stacks with all these tags; repeatable.")
@click.option("--limit", type=click.IntRange(1), help="Maximum number of stacks.")
@client_command
def list_stacks(
    session: Session,
    *,
    deleted: bool,
    nested: bool,
    statuses: tuple[str, ...],
    tags: tuple[str, ...],
    limit: int | None,
) -> None:
    """List the stacks of the project, newest first."""
    query: dict[str, str | int | list[str]] = {}
    if deleted:
        query["show_deleted"] = "true"
    if nested:
        query["show_nested"] = "true"
    if statuses:
        query["status"] = list(statuses)
    if tags:
        query["tags"] = ",".join(tags)
    stacks = list(session.client.stacks.list_all(query, limit))
    if session.as_json:
        session.document({"stacks": stacks})
        return
    rows = [
        (
            stack["stack_name"],
            render.status(stack["stack_status"]),
            render.time(stack["creation_time"]),
            stack["id"],
        )
        for stack in stacks
    ]
    if rows or session.quiet:
        render.table(session.out(), ("NAME", "STATUS", "CREATED", "ID"), rows)
    elif filters := describe(status=statuses, tag=tags):
        session.say(f"No stack of project {session.project} matches {filters}.")
    else:
        session.say(f"Project {session.project} has no stacks.")


@click.command()
@stack_argument
@client_command
def show(session: Session, *, name: str) -> None:
    """Show status, parameters and outputs of a stack."""
    stack = session.client.stacks.show(name, outputs=session.as_json)
    if session.as_json:
        session.document(stack)
        return
    out = session.out()
    render.facts(
        out,
        (
            ("name", stack["stack_name"]),
            ("id", stack["id"]),
            ("status", render.status(stack["stack_status"])),
            ("reason", stack["stack_status_reason"]),
            ("progress", _progress(stack)),
            ("queued", (stack.get("queued_action") or {}).get("action")),
            ("repairs", _pause(stack)),
            ("description", description_of(stack)),
            ("created", render.time(stack.get("creation_time"))),
            ("updated", render.time(stack.get("updated_time"))),
            ("deleted", render.time(stack.get("deletion_time"))),
            ("tags", ", ".join(stack.get("tags") or ())),
        ),
    )
    parameters = stack.get("parameters") or {}
    supplied = {key: value for key, value in parameters.items() if not key.startswith("OS::")}
    if supplied:
        booleans = _boolean_parameters(session, stack, supplied)
        session.say("\nParameters")
        shown = {key: value.lower() if key in booleans else value for key, value in supplied.items()}
        render.outputs(out, [{"output_key": key, "output_value": value} for key, value in shown.items()])
    located = StackId(stack["stack_name"], stack["id"])
    if results := () if stack.get("deletion_time") else session.client.stacks.outputs(located):
        session.say("\nOutputs")
        render.outputs(out, results)


def description_of(stack: JsonMapping) -> str:
    """Return the description; "" for the text that stands for none."""
    text = str(stack.get("description") or "")
    return "" if text == NO_DESCRIPTION else text


def _pause(stack: JsonMapping) -> str:
    """Return the pause of repairs, if any."""
    pause = stack.get("observation_pause")
    return f"paused until {render.time(pause['until'])}: {pause['reason']}" if pause else ""


@click.command()
@stack_argument
@click.argument("key", metavar="[OUTPUT]", required=False)
@client_command
def outputs(session: Session, *, name: str, key: str | None) -> None:
    """Print the outputs of a stack, or the value of one."""
    stack = session.client.stacks.find(name)
    if key is None:
        if session.as_json:
            session.document({"outputs": session.client.stacks.show(stack).get("outputs") or []})
        elif rows_ := session.client.stacks.outputs(stack):
            render.outputs(session.out(), rows_)
        else:
            session.say(f"Stack {stack.name} has no outputs.")
        return
    output = session.client.stacks.output(stack, key)
    if output.get("output_error"):
        raise Failure(f"output {key} has no value: {output['output_error']}", facts={"output": output})
    if session.as_json:
        session.document({"output": output})
    else:
        text = render.as_text(output["output_value"])
        click.echo(text, nl=not text.endswith("\n"))


@click.command()
@stack_argument
@client_command
def template(session: Session, *, name: str) -> None:
    """Print the template of a stack as YAML."""
    document = session.client.stacks.template(session.client.stacks.find(name))
    if session.as_json:
        session.document(document)
    else:
        click.echo(render.as_text(document))


def _boolean_parameters(session: Session, stack: JsonMapping, parameters: JsonMapping) -> set[str]:
    """Return the parameters of type boolean: the API writes `True` for the `true` of a template."""
    candidates = {key for key, value in parameters.items() if value in ("True", "False")}
    if not candidates:
        return set()
    document = session.client.stacks.template(session.client.stacks.find(stack["id"]))
    declared = document.get("parameters") or {}
    return {key for key in candidates if str((declared.get(key) or {}).get("type")).lower() == "boolean"}


def _progress(stack: JsonMapping) -> str:
    """Return the counts of the action in progress."""
    progress = stack.get("progress") or {}
    in_progress = stack["stack_status"].endswith("_IN_PROGRESS") and progress.get("total")
    return counts_text(progress) if in_progress else ""
