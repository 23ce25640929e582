"""`orchestrator resource list` and `show`; `orchestrator stack resources` equals `resource list`."""

from __future__ import annotations

import click

from orchestrator.cli.argument_values import Keyword, describe
from orchestrator.cli.client.connection import StackId
from orchestrator.cli.exit_codes import one_line
from orchestrator.cli.lazy_group import LazyGroup
from orchestrator.cli.options import Session, client_command, stack_argument
from orchestrator.cli.output import render
from orchestrator.engine.states import STATUSES
from orchestrator.json_types import JsonMapping


@click.group(cls=LazyGroup, entries={})
def resource() -> None:
    """List and show the resources of a stack."""


@click.command("resources")
@stack_argument
@click.option(
    "--status",
    "statuses",
    type=Keyword("status", STATUSES),
    multiple=True,
    metavar="STATUS",
    help="Only resources with this status: COMPLETE, FAILED or IN_PROGRESS; repeatable.",
)
@click.option(
    "--type", "types", multiple=True, metavar="TYPE", help="Only resources of this type; repeatable."
)
@click.option(
    "--nested",
    type=click.IntRange(0),
    default=0,
    metavar="LEVELS",
    help="Include LEVELS levels of nested stacks.",
)
@client_command
def resources(
    session: Session, *, name: str, statuses: tuple[str, ...], types: tuple[str, ...], nested: int
) -> None:
    """List the resources of a stack."""
    query: dict[str, str | int | list[str]] = {"nested_depth": nested} if nested else {}
    if statuses:
        query["status"] = list(statuses)
    if types:
        query["type"] = list(types)
    stack = session.client.stacks.find(name)
    rows_ = session.client.resources.list_all(stack, query)
    if session.as_json:
        session.document({"resources": rows_})
        return
    rows = [
        (
            f"{_nested_stack(row, stack)}{row['resource_name']}",
            row["resource_type"],
            render.status(row["resource_status"]),
            row["resource_status_reason"]
            if row["resource_status"].endswith("_FAILED")
            else row["physical_resource_id"],
        )
        for row in sorted(rows_, key=lambda row: (_nested_stack(row, stack), str(row["resource_name"])))
    ]
    if rows or session.quiet:
        render.table(session.out(), ("NAME", "TYPE", "STATUS", "PHYSICAL ID, OR REASON OF FAILURE"), rows)
    elif filters := describe(status=statuses, type=types):
        type_names = sorted({str(row["resource_type"]) for row in session.client.resources.list_all(stack)})
        session.say(f"No resource of stack {stack.name} matches {filters}.")
        session.say(f"Its types: {', '.join(type_names) or 'none'}.")
    else:
        session.say(f"Stack {stack.name} has no resources.")


resource.add_command(resources, "list")


@resource.command()
@stack_argument
@click.argument("resource_name", metavar="RESOURCE")
@client_command
def show(session: Session, *, name: str, resource_name: str) -> None:
    """Show status, dependents and attributes of a resource."""
    stack = session.client.stacks.find(name)
    found = session.client.resources.show(stack, resource_name)
    if session.as_json:
        session.document({"resource": found})
        return
    nested = next((link["href"] for link in found.get("links") or () if link["rel"] == "nested"), "")
    render.facts(
        session.out(),
        (
            ("name", found["resource_name"]),
            ("type", found["resource_type"]),
            ("status", render.status(found["resource_status"])),
            ("reason", found["resource_status_reason"]),
            ("physical id", found["physical_resource_id"]),
            ("description", found.get("description")),
            ("observed", _observation(found)),
            ("unreachable", _outage(found)),
            ("required by", ", ".join(found.get("required_by") or ())),
            ("nested stack", nested.rpartition("/")[2]),
            ("created", render.time(found.get("creation_time"))),
            ("updated", render.time(found.get("updated_time"))),
        ),
    )
    if attributes := found.get("attributes"):
        session.say("\nAttributes")
        pairs = [{"output_key": key, "output_value": value} for key, value in attributes.items()]
        render.outputs(session.out(), pairs)


def _observation(found: JsonMapping) -> str:
    """Return the last successful observation with its time and reason."""
    if not found.get("observed"):
        return ""
    text = f"{found['observed']} at {render.time(found['observed_at'])}"
    return f"{text}: {one_line(found['observed_reason'])}" if found.get("observed_reason") else text


def _outage(found: JsonMapping) -> str:
    """Return the start and the reason of the outage after it, if any."""
    if not found.get("unreachable_since"):
        return ""
    return f"since {render.time(found['unreachable_since'])}: {one_line(found['unreachable_reason'])}"


def _nested_stack(resource: JsonMapping, stack: StackId) -> str:
    """Return the name of the nested stack of a resource and a dot; "" for a resource of `stack` itself."""
    href = next((link["href"] for link in resource.get("links") or () if link["rel"] == "stack"), "")
    path, _, id_ = href.rpartition("/")
    return f"{path.rpartition('/')[2]}." if href and id_ != stack.id else ""
