"""`orchestrator up` on a cloud, and a client of its API."""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx

from orchestrator.clients.keystone.cloud_session import Cloud
from orchestrator.clients.openstack.cloud import OpenStack
from orchestrator.config import PREFIX
from orchestrator.embedded.simulated_cloud import PORTS, kept_password, user_variables
from tests.e2e.running import COMMAND, Up, eventually, free_ports

READY_SECONDS = 300.0
BACKEND_SECONDS = 120.0
REQUEST_SECONDS = 120.0
POLL_SECONDS = 0.5
UNAUTHORIZED, UNAVAILABLE = 401, 503
OUTAGE_SECONDS = 180.0  # during which requests that read are repeated: while Keystone is stopped


class Failed(Exception):
    """A stack or request that did not end as expected."""


def variables_of(directory: Path) -> dict[str, str]:
    """Return the variables of a control plane's user, from its `env.sh`."""
    script = f". {shlex.quote(str(directory / 'env.sh'))} && env -0"
    answer = subprocess.run(["bash", "-c", script], capture_output=True, check=True, text=True)
    pairs = (item.partition("=") for item in answer.stdout.split("\0"))
    return {name: value for name, _, value in pairs if name.startswith("OS_")}


def open_cloud(credentials: Mapping[str, str], username: str, project: str = "") -> Cloud:
    """Return a cloud as a user."""
    from keystoneauth1.identity.v3 import Password
    from keystoneauth1.session import Session

    def session() -> Any:
        return Session(
            Password(
                credentials["OS_AUTH_URL"],
                username=username,
                password=credentials["OS_PASSWORD"],
                project_name=project or credentials["OS_PROJECT_NAME"],
                user_domain_name="Default",
                project_domain_name="Default",
            )
        )

    return Cloud(session, credentials["OS_REGION_NAME"])


@dataclass
class Installation:
    """A running orchestrator, its cloud, and a user of both."""

    up: Up
    credentials: Mapping[str, str]
    cloud: Cloud  # as the user
    client: httpx.Client

    @property
    def openstack(self) -> OpenStack:
        """The client layer, as the user."""
        return OpenStack(self.cloud, 60.0)

    @cached_property
    def administrator(self) -> OpenStack:
        """The client layer, as an administrator."""
        return OpenStack(open_cloud(self.credentials, "admin"), 60.0)

    def request(self, method: str, path: str, **arguments: Any) -> Any:
        """Send a request to the API of the project; return the JSON of the answer, None otherwise None.

        Raises:
            Failed: the API refuses it.
        """
        until = time.monotonic() + OUTAGE_SECONDS
        answer = self.client.request(method, path, headers=self._login(), **arguments)
        while answer.status_code == UNAVAILABLE and method == "GET" and time.monotonic() < until:
            time.sleep(POLL_SECONDS)
            answer = self.client.request(method, path, headers=self._login(), **arguments)
        if answer.status_code == UNAUTHORIZED:  # the token was revoked
            self.cloud.session().invalidate()
            answer = self.client.request(method, path, headers=self._login(), **arguments)
        if answer.is_redirect:  # the name of a stack without its id
            place = answer.headers["Location"]
            answer = self.client.request(method, place, headers=self._login(), **arguments)
        if not answer.is_success:
            raise Failed(f"{method} {path}: {answer.status_code} {answer.text[:1000]}")
        return answer.json() if answer.content else None

    def _login(self) -> dict[str, str]:
        return {"X-Auth-Token": self.cloud.session().get_token()}

    def stack(self, name: str) -> dict[str, Any] | None:
        """Return a stack, None if it does not exist."""
        try:
            found: dict[str, Any] = self.request("GET", f"/stacks/{name}")["stack"]
        except Failed as failure:
            if ": 404 " in str(failure):
                return None
            raise
        return found

    def resources(self, name: str, depth: int = 5) -> list[dict[str, Any]]:
        """Return the resources of a stack and its nested stacks."""
        query = {"nested_depth": depth}
        listed: list[dict[str, Any]] = self.request("GET", f"/stacks/{name}/resources", params=query)[
            "resources"
        ]
        return listed

    def wait(self, name: str, seconds: float, between: Any = None, poll_seconds: float = POLL_SECONDS) -> str:
        """Return the status of a stack when no action is in progress: "" if it does not exist. `between` is
        called again and again with the name.

        Raises:
            Failed: the action does not end.
        """
        until = time.monotonic() + seconds
        while True:
            stack = self.stack(name)
            if stack is None:
                return ""
            status: str = stack["stack_status"]
            if status == "DELETE_COMPLETE":
                return ""
            if not status.endswith("IN_PROGRESS"):
                return status
            if time.monotonic() > until:
                raise Failed(f"{name} is {status} after {seconds:.0f} s: {self.causes(name)}")
            if between is not None:
                between(name)
            time.sleep(poll_seconds)

    def causes(self, name: str) -> str:
        """Return the reasons of the resources that are not complete."""
        with contextlib.suppress(Failed):
            rows = [row for row in self.resources(name) if not row["resource_status"].endswith("COMPLETE")]
            return "; ".join(
                f"{row['resource_name']} ({row['resource_type']}) {row['resource_status']}: "
                f"{row['resource_status_reason']}"
                for row in rows
            )
        return ""


@contextlib.contextmanager
def as_user(
    up: Up, credentials: Mapping[str, str], username: str, project: str = ""
) -> Iterator[Installation]:
    """Use an orchestrator as a user in a project."""
    cloud = open_cloud(credentials, username, project)
    base = f"{up.url}/v1/{cloud.session().get_project_id()}"
    with httpx.Client(base_url=base, timeout=REQUEST_SECONDS, trust_env=False) as client:
        yield Installation(up, credentials, cloud, client)


def wait_for_backends(credentials: Mapping[str, str]) -> None:
    """Wait until the scheduler of a control plane's Cinder knows a backend. After a start it may know none
    for a minute, in which the creates of volumes fail.
    """
    storage = OpenStack(open_cloud(credentials, "admin"), 60.0).block_storage
    eventually(lambda: storage.get("/scheduler-stats/get_pools").get("pools"), BACKEND_SECONDS)


@contextlib.contextmanager
def installation(
    directory: Path | None,
    *,
    username: str = "admin",
    workers: int = 1,
    settings: Mapping[str, str] | None = None,
) -> Iterator[Installation]:
    """Keep an orchestrator running on the control plane in `directory`, None for the simulated cloud. The
    user acts in the project `demo`.
    """
    with tempfile.TemporaryDirectory(prefix="orchestrator-cloud-") as name:
        folder = Path(name)
        folder.chmod(0o711)  # the embedded database's user passes through
        options: tuple[str, ...] = ()
        if directory is None:
            port = free_ports(PORTS)
            credentials, environment = {}, {}
            options = ("--cloud", "simulated", "--cloud-port", str(port))
        else:
            credentials = variables_of(directory)
            wait_for_backends(credentials)
            environment = {
                f"{PREFIX}AUTH": "keystone",
                f"{PREFIX}KEYSTONE_AUTH_URL": credentials["OS_AUTH_URL"],
                f"{PREFIX}KEYSTONE_USERNAME": "nova",
                f"{PREFIX}KEYSTONE_PASSWORD": credentials["OS_PASSWORD"],
            }
        environment |= {f"{PREFIX}QUOTAS": "requests_per_second=-1", **(settings or {})}
        # Not a fork: processes import `sitecustomize` (mortal/) at their start.
        up = Up(folder / "data", env=environment, workers=workers, options=options, command=COMMAND)
        try:
            up.wait_ready(READY_SECONDS)
            if directory is None:
                credentials = user_variables(port, kept_password(up.data_dir))
            with as_user(up, credentials, username) as user:
                yield user
        finally:
            up.stop()


@contextlib.contextmanager
def registered(on: Installation, *regions: str) -> Iterator[None]:
    """Keep an orchestrator in the catalog for a block, in its region and in new `regions`."""
    identity = on.administrator.identity
    body = {"name": "orchestrator", "type": "orchestration", "enabled": True}
    service = identity.post("/services", {"service": body})["service"]["id"]
    try:
        for region in regions:
            identity.post("/regions", {"region": {"id": region}})
        for region in (on.credentials["OS_REGION_NAME"], *regions):
            for interface in ("public", "internal", "admin"):
                endpoint = {
                    "service_id": service,
                    "interface": interface,
                    "region_id": region,
                    "url": f"{on.up.url}/v1/%(project_id)s",
                }
                identity.post("/endpoints", {"endpoint": endpoint})
        yield
    finally:
        identity.delete(f"/services/{service}")
        for region in regions:
            identity.delete(f"/regions/{region}")


def chosen_directory() -> Path | None:
    """Return the directory of the control plane that `OPENSTACK_DIR` names, None for the simulated cloud."""
    name = os.environ.get("OPENSTACK_DIR", "")
    return Path(name) if name else None
