"""Create, change, check and delete the stack of each template of a collection, on a cloud.

    python -m tests.openstack.acceptance.templates [DIRECTORY] [--only TEXT] [--jobs 3]

The directory holds `expected.json` and `templates/`. Those templates are used whose types all exist here, and
of which Heat accepts the types of services. `OPENSTACK_DIR` names a control plane; without it, the cloud is
simulated. Servers, agents and wait conditions are signalled as their guests would. After each stack and at
the end, the objects of the cloud must be those of the beginning. Exits with 1 if a template fails.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
import uuid
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from orchestrator.cli.exit_codes import Failure
from orchestrator.cli.template_files.load import read_template, request_body
from orchestrator.errors import OrchestratorError
from orchestrator.resources.registry import load_registry
from orchestrator.template.parse import Limits, parse
from tests.corpus.__main__ import DEFAULT, types_in
from tests.openstack.acceptance.changes import changed
from tests.openstack.acceptance.guests import Guests
from tests.openstack.acceptance.installation import (
    Failed,
    Installation,
    chosen_directory,
    installation,
)
from tests.openstack.acceptance.inventory import Item, inventory, leaked
from tests.openstack.acceptance.parameters import IMAGE, values

OFFERED: Final = frozenset({"SUPPORTED", "DEPRECATED"})
CLOUD: Final = re.compile(r"(OS::(Nova|Neutron|Cinder|Glance|Keystone)|AWS::EC2)::")
IMAGE_NAME: Final = re.compile(r"\b[A-Z]+[0-9]+-(?:x86_64|i386)-[a-z-]+\b")
FLAVORS: Final = {"ds512M": 512, "m1.heat": 512, "m1.xlarge": 4096}
SECONDS: Final = 900.0
GONE_SECONDS: Final = 60.0


@dataclass(frozen=True)
class Prepared:
    """Objects that templates refer to."""

    prefix: str
    server_id: str


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
        if row["lenient"] == 200 and own <= known and any(CLOUD.match(kind) for kind in own):
            yield row["template"]


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
            "user_default_project": "demo",
            "group_role": "member",
            "group_role_domain": "Default",
            "group_role_project": "demo",
        },
        "hot/nova/host_aggregate.yaml": {
            "host_aggregate_name": f"{prefix}-aggregate",
            "availability_zone_name": f"{prefix}-zone",
        },
    }
    return rules.get(name, {})


class Run:
    """The templates on an installation."""

    def __init__(self, on: Installation, directory: Path, prepared: Prepared) -> None:
        """Do nothing yet."""
        self.on, self.directory, self.prepared = on, directory, prepared
        self.guests = Guests(on)

    def template(self, number: int, name: str) -> str:
        """Operate the stack of a template; return the reason of a failure, otherwise ""."""
        stack = f"{self.prepared.prefix}-{number}"
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
        if rows[resource]["physical_resource_id"] != ids[resource] and "RandomString" not in str(
            rows[resource]
        ):
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


@contextmanager
def preparations(on: Installation, directory: Path) -> Iterator[Prepared]:
    """Keep the objects for a block that templates refer to: a key pair, images, flavors and a server."""
    prefix = f"so-corpus-{uuid.uuid4().hex[:6]}"
    openstack, images, flavors = on.openstack, [], []
    names = {
        found
        for path in (directory / "templates").rglob("*")
        if path.suffix in {".yaml", ".template"}
        for found in IMAGE_NAME.findall(path.read_text())
    }
    present = {item["name"] for item in openstack.image.listed("/images", "images")}
    for name in sorted(names - present):
        image = openstack.image.post(
            "/images",
            {"name": name, "disk_format": "raw", "container_format": "bare", "visibility": "public"},
        )
        openstack.image.upload(f"/images/{image['id']}/file", b"not a disk")
        images.append(image["id"])
    known = {item["name"] for item in openstack.compute.listed("/flavors", "flavors")}
    for name, ram in FLAVORS.items():
        if name not in known:
            flavor = {"name": name, "ram": ram, "vcpus": 1, "disk": 20}
            flavors.append(openstack.compute.post("/flavors", {"flavor": flavor})["flavor"]["id"])
    openstack.compute.post("/os-keypairs", {"keypair": {"name": prefix, "type": "ssh"}}, microversion="2.2")
    server_id = _server(openstack, prefix)
    try:
        yield Prepared(prefix, server_id)
    finally:
        openstack.compute.delete(f"/servers/{server_id}")
        openstack.compute.delete(f"/os-keypairs/{prefix}")
        for flavor_id in flavors:
            openstack.compute.delete(f"/flavors/{flavor_id}")
        for image_id in images:
            openstack.image.delete(f"/images/{image_id}")


def _server(openstack: Any, name: str) -> str:
    image = next(item for item in openstack.image.listed("/images", "images") if item["name"] == IMAGE)
    flavor = next(
        item for item in openstack.compute.listed("/flavors", "flavors") if item["name"] == "m1.tiny"
    )
    network = next(iter(openstack.network.listed("/networks", "networks", {"name": "private"})))
    body = {
        "name": name,
        "imageRef": image["id"],
        "flavorRef": flavor["id"],
        "networks": [{"uuid": network["id"]}],
    }
    server_id = str(openstack.compute.post("/servers", {"server": body})["server"]["id"])
    until = time.monotonic() + SECONDS
    while openstack.compute.get(f"/servers/{server_id}")["server"]["status"] != "ACTIVE":
        if time.monotonic() > until:
            raise Failed("a server does not become active")
        time.sleep(1.0)
    return server_id


def remains(on: Installation, before: frozenset[Item]) -> list[Item]:
    """Return the objects that are left, when services had the time to delete theirs."""
    until = time.monotonic() + GONE_SECONDS
    while (left := leaked(on.administrator, before)) and time.monotonic() < until:
        time.sleep(2.0)
    return left


@click.command()
@click.argument("directory", type=click.Path(path_type=Path), default=None, required=False)
@click.option("--only", default="", help="Templates whose names contain this text.")
@click.option("--jobs", default=3, show_default=True, help="Stacks at a time.")
def main(directory: Path | None, only: str, jobs: int) -> None:
    """Run the templates; exit with 1 if a template fails or an object is left."""
    place = directory or Path(os.environ.get("CORPUS_DIR", DEFAULT))
    names: list[str] = [name for name in candidates(place) if only in name]
    with installation(chosen_directory()) as on:
        before = inventory(on.administrator)
        with preparations(on, place) as prepared, ThreadPoolExecutor(jobs) as pool:
            run = Run(on, place, prepared)
            faults: Mapping[str, str] = dict(
                zip(names, pool.map(run.template, range(len(names)), names), strict=True)
            )
        left = remains(on, before)
    for item in left:
        click.echo(f"left: {item.collection} {item.id} {item.name}")
    failed = [name for name, fault in faults.items() if fault]
    click.echo(f"{len(names) - len(failed)} of {len(names)} templates passed; {len(left)} objects left")
    sys.exit(1 if failed or left else 0)


if __name__ == "__main__":
    main()
