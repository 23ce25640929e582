"""`python -m qa.acceptance.three_tier`: the example in three tiers, from create to delete.

`OPENSTACK_DIR` names a control plane; without it, the cloud is simulated. Exits with 1 at a failure, and if
objects are left.
"""

from __future__ import annotations

import sys
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import click

from orchestrator.cli.template_files.load import read_template, request_body
from qa.acceptance.installation import (
    Failed,
    Installation,
    chosen_directory,
    installation,
)
from qa.acceptance.inventory import inventory
from qa.acceptance.templates import remains

TEMPLATE: Final = Path(__file__).parents[2] / "examples" / "three-tier.yaml"
SECONDS: Final = 1_200.0
CHANGED: Final = {"web_count": 3, "database_gigabytes": 6}


def operate(
    on: Installation, template: Path, changes: Mapping[str, Any], check_update: Callable[[str], str]
) -> str:
    """Create a stack, change parameters, check and delete it; return the reason of a failure, otherwise "".

    `check_update` is called with the name of the updated stack, and returns such a reason.
    """
    name = f"so-{template.stem}-{uuid.uuid4().hex[:6]}"
    source = read_template(template)

    def body(**parameters: Any) -> dict[str, Any]:
        return request_body(source, [], parameters, stack_name=name)

    steps = (
        ("POST", "/stacks", body(), "CREATE_COMPLETE"),
        ("PUT", f"/stacks/{name}", body(**changes), "UPDATE_COMPLETE"),
        ("POST", f"/stacks/{name}/actions", {"check": None}, "CHECK_COMPLETE"),
        ("DELETE", f"/stacks/{name}", None, ""),
    )
    for method, path, content, expected in steps:
        began = time.monotonic()
        on.request(method, path, json=content)
        status = on.wait(name, SECONDS)
        click.echo(f"{method:6} {time.monotonic() - began:6.1f} s  {status or 'deleted'}")
        if status != expected:
            return on.causes(name)
        fault = check_update(name) if method == "PUT" else ""
        if fault:
            return fault
    return ""


def outputs(on: Installation, name: str) -> dict[str, Any]:
    """Return the outputs of a stack."""
    stack = on.stack(name)
    return {item["output_key"]: item["output_value"] for item in (stack or {}).get("outputs", ())}


def main() -> int:
    """Run the example; return the exit status."""
    with installation(chosen_directory(), username="demo") as on:
        before = inventory(on.administrator)

        def check(name: str) -> str:
            addresses = outputs(on, name)["web_addresses"]
            return "" if len(set(addresses)) == CHANGED["web_count"] else f"web_addresses are {addresses}"

        try:
            fault = operate(on, TEMPLATE, CHANGED, check)
        except Failed as failure:
            fault = str(failure)
        left = remains(on, before)
    for item in left:
        click.echo(f"left: {item.collection} {item.id} {item.name}")
    click.echo(fault or "three tiers: created, updated, checked and deleted")
    return 1 if fault or left else 0


if __name__ == "__main__":
    sys.exit(main())
