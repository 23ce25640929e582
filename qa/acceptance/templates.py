"""Create, change, check and delete the stack of each template of a collection, on a cloud.

    python -m qa.acceptance.templates [DIRECTORY] [--only TEXT] [--jobs 3]

The directory holds `expected.json` and `templates/`. Those templates are used whose types all exist here, and
of which Heat accepts the types of services. `OPENSTACK_DIR` names a control plane; without it, the cloud is
simulated. Servers, agents and wait conditions are signalled as their guests would. After each stack and at
the end, the objects of the cloud must be the same as at the beginning. Exits with 1 if a template fails.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click

from orchestrator.cli.exit_codes import Failure
from orchestrator.cli.template_files.load import read_template, request_body
from orchestrator.config import PREFIX
from orchestrator.errors import OrchestratorError
from orchestrator.resources.registry import load_registry
from orchestrator.template.parse import Limits, parse
from qa.acceptance.changes import changed
from qa.acceptance.guests import Guests
from qa.acceptance.installation import (
    Failed,
    Installation,
    chosen_directory,
    installation,
    registered,
)
from qa.acceptance.inventory import Item, inventory, leaked
from qa.acceptance.parameters import values
from qa.acceptance.prepared_project import Prepared, empty_project, prepared_project
from qa.corpus.__main__ import DEFAULT, types_in

OFFERED: Final = frozenset({"SUPPORTED", "DEPRECATED"})
SERVED: Final = re.compile(
    r"(OS::(Nova|Neutron|Cinder|Glance|Keystone|Heat)|AWS::(EC2|AutoScaling|CloudFormation|IAM))::"
)
CLOUD: Final = re.compile(r"(OS::(Nova|Neutron|Cinder|Glance|Keystone)|AWS::EC2)::")
OTHER_REGION: Final = "RegionTwo"  # of a template with stacks in two regions
# A trust cannot be delegated again to the other region.
SETTINGS: Final = {f"{PREFIX}DEFERRED_AUTH_METHOD": "application_credential"}
# A server without a network is in the template's: the project must have no other.
ONLY_NETWORK: Final = frozenset({"cfn/F17/WordPress_Single_Instance_With_Neutron.template"})
# A list in place of a map, which Heat's validation of a template without its resources does not see.
REFUSED: Final = frozenset({"hot/software-config/example-templates/example-chef-template.yaml"})
SECONDS: Final = 900.0
GONE_SECONDS: Final = 60.0


def candidates(directory: Path) -> Iterator[str]:
    """Yield the templates that use only types that exist here."""
    known = {name for name, kind in load_registry().items() if kind.support_status in OFFERED}
    for row in json.loads((directory / "expected.json").read_text())["templates"]:
        path = directory / "templates" / row["template"]
        try:
            source = read_template(path)
        except Failure:
            continue
        used = set(types_in(iter([source.text, *source.files.values()])))
        own = {kind for kind in used if not kind.endswith((".yaml", ".template"))}
        if row["template"] in REFUSED:
            continue
        served = all(SERVED.match(kind) for kind in own)
        if row["lenient"] == 200 and served and own <= known and any(CLOUD.match(kind) for kind in own):
            yield row["template"]


def makes_networks(directory: Path, name: str) -> bool:
    """Whether servers without a network would be ambiguous in the same project."""
    text = (directory / "templates" / name).read_text()
    return "OS::Neutron::Net" in text or "OS::Neutron::ProviderNet" in text


def special(name: str, prepared: Prepared) -> dict[str, Any]:
    """Return the values of parameters that only this template has."""
    prefix = prepared.prefix
    rules: dict[str, dict[str, Any]] = {
        "hot/external_resource.yaml": {"external_server_id": prepared.server_id},
        "hot/resource_group/volume_with_attachment.yaml": {"instance_id": prepared.server_id},
        "hot/keystone/keystone_region.yaml": {"region_id": f"{prefix}-b", "parent_region_id": f"{prefix}-a"},
        "hot/keystone/keystone_service.yaml": {"name": f"{prefix}-service", "type": f"{prefix}-a"},
        "hot/keystone/keystone_service_endpoint.yaml": {
            "name": f"{prefix}-endpoint",
            "type": f"{prefix}-b",
            "region": "RegionOne",
        },
        "hot/keystone/keystone_user.yaml": {
            "user_name": f"{prefix}-user",
            "user_domain": "Default",
            "user_default_project": prefix,
            "group_role": "member",
            "group_role_domain": "Default",
            "group_role_project": prefix,
        },
        "hot/nova/host_aggregate.yaml": {
            "host_aggregate_name": f"{prefix}-aggregate",
            "availability_zone_name": f"{prefix}-zone",
        },
    }
    return rules.get(name, {})


class Run:
    """The templates on an installation."""

    def __init__(self, prepared: Prepared, directory: Path) -> None:
        """Do nothing yet."""
        self.on, self.directory, self.prepared = prepared.on, directory, prepared
        self.guests = Guests(self.on)
        self._numbers = itertools.count(1)

    def template(self, name: str) -> str:
        """Operate the stack of a template; return the reason of a failure, otherwise ""."""
        stack = f"{self.prepared.prefix}-{next(self._numbers)}"
        began, text = time.monotonic(), ""
        try:
            text = self._operate(stack, name)
        except (Failed, Failure, ValueError, OrchestratorError) as failure:
            text = str(failure)
        if text:
            text += self._remove(stack)
        click.echo(f"{'FAILED' if text else 'ok':6} {time.monotonic() - began:6.1f} s  {name}  {text}")
        return text

    def _operate(self, stack: str, name: str) -> str:
        source = read_template(self.directory / "templates" / name)
        template = parse(source.text, Limits())
        parameters = values(template, self.prepared.prefix, special(name, self.prepared))
        body = request_body(source, [], parameters, stack_name=stack, timeout_mins=15, disable_rollback=True)
        self.on.request("POST", "/stacks", json=body)
        if fault := self._fault(stack, "CREATE_COMPLETE"):
            return fault
        ids = {row["resource_name"]: row["physical_resource_id"] for row in self.on.resources(stack, 0)}
        after, place = changed(template)
        self.on.request("PUT", f"/stacks/{stack}", json={**body, "template": after})
        if fault := self._fault(stack, "UPDATE_COMPLETE"):
            return f"{place}: {fault}"
        rows = {row["resource_name"]: row for row in self.on.resources(stack, 0)}
        resource = place.partition(".")[0]
        if resource in rows and rows[resource]["physical_resource_id"] != ids[resource]:
            return f"{place}: replaced"
        self.on.request("POST", f"/stacks/{stack}/actions", json={"check": None})
        if fault := self._fault(stack, "CHECK_COMPLETE"):
            return fault
        self.on.request("DELETE", f"/stacks/{stack}")
        return self._fault(stack, "")

    def _fault(self, stack: str, expected: str) -> str:
        status = self.on.wait(stack, SECONDS, self.guests.signal)
        if status == expected:
            return ""
        found = self.on.stack(stack)
        reason = found["stack_status_reason"] if found else ""
        return f"{status or 'deleted'} ({reason}) {self.on.causes(stack)}"

    def _remove(self, stack: str) -> str:
        """Delete a failed stack; return the obstacle."""
        try:
            if self.on.stack(stack) is not None:
                self.on.request("DELETE", f"/stacks/{stack}")
                fault = self._fault(stack, "")
                return f" DELETE: {fault}" if fault else ""
        except Failed as failure:
            return f" DELETE: {failure}"
        return ""


def remains(on: Installation, before: frozenset[Item]) -> list[Item]:
    """Return the objects that are left, when services had the time to delete theirs."""
    until = time.monotonic() + GONE_SECONDS
    while (left := leaked(on.administrator, before)) and time.monotonic() < until:
        time.sleep(2.0)
    return left


@click.command()
@click.argument("directory", type=click.Path(path_type=Path), default=None, required=False)
@click.option("--only", default="", help="Templates whose names contain any of these texts: a,b.")
@click.option("--jobs", default=3, show_default=True, help="Stacks at a time.")
def main(directory: Path | None, only: str, jobs: int) -> None:
    """Run the templates; exit with 1 if a template fails or an object is left."""
    place = directory or Path(os.environ.get("CORPUS_DIR", DEFAULT))
    names: list[str] = [name for name in candidates(place) if any(text in name for text in only.split(","))]
    with installation(chosen_directory(), settings=SETTINGS) as on:
        before = inventory(on.administrator)
        with (
            registered(on, OTHER_REGION),
            prepared_project(on, place / "templates") as prepared,
            ThreadPoolExecutor(jobs) as pool,
        ):
            run = Run(prepared, place)
            inside = [name for name in names if name not in ONLY_NETWORK]
            alone = [name for name in inside if makes_networks(place, name)]
            together = [name for name in inside if name not in alone]
            faults = dict(zip(together, pool.map(run.template, together), strict=True))
            faults |= {name: run.template(name) for name in alone}
            with empty_project(on, f"{prepared.prefix}-b") as empty:
                other = Run(replace(prepared, on=empty), place)
                faults |= {name: other.template(name) for name in names if name in ONLY_NETWORK}
        left = remains(on, before)
    for item in left:
        click.echo(f"left: {item.collection} {item.id} {item.name}")
    failed = [name for name, fault in faults.items() if fault]
    click.echo(f"{len(names) - len(failed)} of {len(names)} templates passed; {len(left)} objects left")
    sys.exit(1 if failed or left else 0)


if __name__ == "__main__":
    main()
