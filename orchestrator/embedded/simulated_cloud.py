"""The simulated cloud as a child process of `orchestrator up --cloud simulated`, and its settings."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from pydantic import SecretStr

from orchestrator.clients.deadline import is_healthy
from orchestrator.config import PREFIX
from orchestrator.embedded.private_files import make
from orchestrator.embedded.process import Child
from orchestrator.errors import Misconfigured
from orchestrator.simulated.contents import PASSWORD, REGION, STACK_DOMAIN

SIMULATED: Final = "simulated"
SERVICE_USER: Final = "orchestrator"
DOMAIN_ADMIN: Final = "heat_domain_admin"
PROBE_SECONDS: Final = 2.0
PORTS: Final = 12  # consecutive ports, beginning with that of Keystone


def auth_url(port: int) -> str:
    """Return the URL of the simulated Keystone."""
    return f"http://127.0.0.1:{port}/v3"


def user_variables(port: int) -> dict[str, str]:
    """Return the variables with which OpenStack's clients and our commands act as the user `demo`."""
    return {
        "OS_AUTH_URL": auth_url(port),
        "OS_USERNAME": "demo",
        "OS_PASSWORD": PASSWORD,
        "OS_PROJECT_NAME": "demo",
        "OS_USER_DOMAIN_NAME": "Default",
        "OS_PROJECT_DOMAIN_NAME": "Default",
        "OS_REGION_NAME": REGION,
    }


def settings_of(port: int) -> dict[str, Any]:
    """Return the settings with which API and workers use the simulated cloud.

    Raises:
        Misconfigured: the clients of OpenStack are not installed.
    """
    if find_spec("openstack") is None or find_spec("keystonemiddleware") is None:
        raise Misconfigured(
            "the clients of OpenStack are not installed: pip install 'stack-orchestrator[openstack]'"
        )
    return {
        "auth": "keystone",
        "keystone_auth_url": auth_url(port),
        "keystone_username": SERVICE_USER,
        "keystone_password": SecretStr(PASSWORD),
        "keystone_region_name": REGION,
        "stack_user_domain_name": STACK_DOMAIN,
        "stack_domain_admin": DOMAIN_ADMIN,
        "stack_domain_admin_password": SecretStr(PASSWORD),
    }


def environment_of(port: int) -> dict[str, str]:
    """Return the same settings as variables."""
    return {
        f"{PREFIX}{name.upper()}": value.get_secret_value() if isinstance(value, SecretStr) else str(value)
        for name, value in settings_of(port).items()
    }


def child(port: int, root: Path, database_url: str, orchestration_url: str) -> Child:
    """Return the simulated cloud as a process, with its objects in the database, its faults in
    `root`/simulated, and the API at `orchestration_url` in its catalog.
    """
    folder = root / SIMULATED
    make(folder)
    options = ("--faults", str(folder / "faults.json"), "--orchestration-url", orchestration_url)
    return Child(
        name="simulated-cloud",
        argv=(sys.executable, "-m", "orchestrator.simulated", "--port", str(port), *options),
        env=os.environ | {f"{PREFIX}DATABASE_URL": database_url},
        cwd=root / "run",
        ready=lambda _pid: is_healthy(auth_url(port), PROBE_SECONDS),
    )
