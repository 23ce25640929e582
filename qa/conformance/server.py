"""The server under Heat's tests: its settings, and the configuration of the harness."""

from __future__ import annotations

import configparser
import io
from collections.abc import Mapping
from dataclasses import dataclass

import yaml

PROJECTS = ("demo", "admin")  # and the users of the same names, of whom the second is an administrator
REGION = "RegionOne"
PASSWORD = "any will do"
HIDDEN_TAG = "hidden"
TEST_SECONDS = 600  # maximum for a single test
PATIENCE_SECONDS = 240  # how long a test waits for a stack, on a machine that does other things too


@dataclass(frozen=True, slots=True)
class Ports:
    """Where the server and the stand-in for Keystone listen, on loopback."""

    api: int
    identity: int

    @property
    def api_url(self) -> str:
        """The API's address, to which the project is added."""
        return f"http://127.0.0.1:{self.api}/v1"

    @property
    def auth_url(self) -> str:
        """The address of the stand-in for Keystone."""
        return f"http://127.0.0.1:{self.identity}/v3"


@dataclass(frozen=True, slots=True)
class Login:
    """Credentials of a test user at the stand-in: a token and its project."""

    project_id: str
    token: str


def settings(ports: Ports, catalog_file: str) -> dict[str, str]:
    """Return the environment of `orchestrator up`.

    Heat's tests require settings that are off by default: abandon and adopt, a tag that hides stacks, and a
    catalog with our own region.
    """
    chosen = {
        "auth": "keystone",
        "keystone_auth_url": ports.auth_url,
        "keystone_username": "heat",
        "keystone_password": PASSWORD,
        "enable_stack_abandon": "true",
        "enable_stack_adopt": "true",
        "hidden_stack_tags": HIDDEN_TAG,
        "region_name": REGION,
        "catalog_file": catalog_file,
    }
    return {f"ORCHESTRATOR_{name.upper()}": value for name, value in chosen.items()}


def catalog(ports: Ports, logins: Mapping[str, Login]) -> str:
    """Return the operator's catalog: our own region, and as whom the projects of the tests call it."""
    projects = {
        login.project_id: {"project": login.project_id, "token": login.token} for login in logins.values()
    }
    return yaml.safe_dump({"regions": {REGION: {"url": ports.api_url, "projects": projects}}})


def endpoint(ports: Ports, jobs: int, patience_seconds: int = PATIENCE_SECONDS) -> str:
    """Return the input of the harness: server URL, user, timeouts."""
    reported = configparser.ConfigParser(interpolation=None)
    reported["server"] = {"name": "stack-orchestrator"}
    reported["identity"] = {
        "mode": "keystone",
        "auth_url": ports.auth_url,
        "region": REGION,
        "password": PASSWORD,
        "admin_password": PASSWORD,
    }
    reported["tests"] = {
        "build_timeout": str(patience_seconds),
        "build_interval": "1",
        "limit": str(TEST_SECONDS),
        "jobs": str(jobs),
        "convergence": "true",
        "hidden_stack_tag": HIDDEN_TAG,
        "minimal_image_ref": "conformance-image",
        "instance_type": "m1.small",
        "minimal_instance_type": "m1.tiny",
    }
    text = io.StringIO()
    reported.write(text)
    return text.getvalue()
