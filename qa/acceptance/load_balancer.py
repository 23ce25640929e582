"""`python -m qa.acceptance.load_balancer`: the example with Octavia, from create to delete.

`OPENSTACK_DIR` names a control plane with Octavia; without it, the cloud is simulated. The parts of the load
balancer are changed at the same time, and wait for each other. Exits with 1 at a failure, and if objects are
left.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import click

from qa.acceptance.installation import Failed, chosen_directory, installation
from qa.acceptance.inventory import inventory
from qa.acceptance.templates import remains
from qa.acceptance.three_tier import operate, outputs

TEMPLATE: Final = Path(__file__).parents[2] / "examples" / "load-balancer.yaml"
CHANGED: Final = {"members": 4, "algorithm": "SOURCE_IP"}


def main() -> int:
    """Run the example; return the exit status."""
    with installation(chosen_directory(), username="demo", workers=4) as on:
        before = inventory(on.administrator)

        def check(name: str) -> str:
            members = outputs(on, name)["members"]
            return "" if len(members) == CHANGED["members"] else f"members are {members}"

        try:
            fault = operate(on, TEMPLATE, CHANGED, check)
        except Failed as failure:
            fault = str(failure)
        left = remains(on, before)
    for item in left:
        click.echo(f"left: {item.collection} {item.id} {item.name}")
    click.echo(fault or "load balancer: created, updated, checked and deleted")
    return 1 if fault or left else 0


if __name__ == "__main__":
    sys.exit(main())
