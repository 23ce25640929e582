"""Differences between the desired and the observed state, and plans to end them."""

from __future__ import annotations

import json

import click

from orchestrator.cli.exit_codes import clean, one_line
from orchestrator.cli.options import Session
from orchestrator.cli.output import render
from orchestrator.json_types import JsonMapping


def print_plan(session: Session, found: JsonMapping) -> None:
    """Print the plan of a convergence."""
    rows = [
        (one["path"], one["resource_type"], one["verdict"], one["action"] or "", _remark(one))
        for one in found["resources"]
    ]
    if rows:
        render.table(session.out(), ("RESOURCE", "TYPE", "VERDICT", "ACTION", "DETAILS"), rows)
    else:
        session.say(f"Stack {found['stack_name']} is in sync: {found['observed']} resources were observed.")
    for warning in found.get("warnings", ()):
        click.echo(f"Warning: {one_line(warning)}", err=True)


def _remark(one: JsonMapping) -> str:
    parts = [details(one)]
    if one["obstacle"] and one["obstacle"] != one["reason"]:
        parts.append(f"not repaired: {one_line(one['obstacle'])}")
    if one["holds_data"]:
        parts.append("holds data, which the new object will not have")
    return "; ".join(part for part in parts if part)


def details(row: JsonMapping) -> str:
    """Return the differences of a resource, or the reason of its verdict, in a line."""
    if row["verdict"] != "MODIFIED":
        return one_line(row["reason"])
    return "; ".join(
        f"{clean(item['property'])}: {_value(item['expected'])} → {_value(item['found'])}"
        for item in row["differences"]
    )


def _value(value: object) -> str:
    return one_line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
