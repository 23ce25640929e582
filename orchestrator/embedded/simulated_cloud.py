"""The simulated cloud as a child process of `orchestrator up --cloud simulated`, and its settings."""

from __future__ import annotations

import os
import secrets
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from pydantic import SecretStr

from orchestrator.clients.deadline import is_healthy
from orchestrator.config import PREFIX
from orchestrator.embedded.private_files import make, opened
from orchestrator.embedded.process import Child
from orchestrator.errors import Misconfigured

SIMULATED: Final = "simulated"
PROGRAM: Final = "simulated_openstack"  # its own distribution; only started, never imported
PASSWORD_FILE: Final = "password"  # noqa: S105 - the name of a file
OBJECTS_FILE: Final = "objects.sqlite"
PASSWORD_BYTES: Final = 16
# Of the objects of a new simulated cloud.
REGION: Final = "RegionOne"
SERVICE_USER: Final = "heat"
STACK_DOMAIN: Final = "heat"
DOMAIN_ADMIN: Final = "heat_domain_admin"
PROBE_SECONDS: Final = 2.0
PORTS: Final = 12  # consecutive ports, beginning with that of Keystone


def auth_url(port: int) -> str:
    """Return the URL of the simulated Keystone."""
    return f"http://127.0.0.1:{port}/v3"


def new_password() -> str:
    """Return a random password of letters and digits."""
    return secrets.token_hex(PASSWORD_BYTES)


def kept_password(root: Path, proposed: str | None = None) -> str:
    """Return the password of the users of the simulated cloud of a data directory; without one, keep the
    `proposed` password, readable by the owner of the directory only.

    Raises:
        Misconfigured: it cannot be read.
    """
    folder = root / SIMULATED
    if proposed is not None:
        make(folder)
    try:
        with opened(folder) as directory:
            if proposed is not None and not directory.has(PASSWORD_FILE):
                directory.write(PASSWORD_FILE, proposed + "\n", durable=True)
            return directory.read(PASSWORD_FILE).strip()
    except OSError as error:
        place = folder / PASSWORD_FILE
        raise Misconfigured(f"cannot read {place}: {error.strerror or error}") from error


def user_variables(port: int, password: str) -> dict[str, str]:
    """Return the variables with which OpenStack's clients and our commands act as the user `demo`."""
    return {
        "OS_AUTH_URL": auth_url(port),
        "OS_USERNAME": "demo",
        "OS_PASSWORD": password,
        "OS_PROJECT_NAME": "demo",
        "OS_USER_DOMAIN_NAME": "Default",
        "OS_PROJECT_DOMAIN_NAME": "Default",
        "OS_REGION_NAME": REGION,
    }


def settings_of(port: int, password: str) -> dict[str, Any]:
    """Return the settings with which API and workers use the simulated cloud.

    Raises:
        Misconfigured: the simulated cloud or the clients of OpenStack are not installed.
    """
    if find_spec(PROGRAM) is None:
        raise Misconfigured(
            "the simulated cloud is not installed: run pip install ./packages/simulated-openstack in the"
            " repository of stack-orchestrator"
        )
    if find_spec("openstack") is None or find_spec("keystonemiddleware") is None:
        raise Misconfigured(
            "the clients of OpenStack are not installed: pip install 'stack-orchestrator[openstack]'"
        )
    return {
        "auth": "keystone",
        "keystone_auth_url": auth_url(port),
        "keystone_username": SERVICE_USER,
        "keystone_password": SecretStr(password),
        "keystone_region_name": REGION,
        "stack_user_domain_name": STACK_DOMAIN,
        "stack_domain_admin": DOMAIN_ADMIN,
        "stack_domain_admin_password": SecretStr(password),
    }


def environment_of(port: int, password: str) -> dict[str, str]:
    """Return the same settings as variables."""
    return {
        f"{PREFIX}{name.upper()}": value.get_secret_value() if isinstance(value, SecretStr) else str(value)
        for name, value in settings_of(port, password).items()
    }


def child(port: int, root: Path, orchestration_url: str) -> Child:
    """Return the simulated cloud as a process, with its objects and faults in `root`/simulated, and the API
    at `orchestration_url` in its catalog.
    """
    folder = root / SIMULATED
    make(folder)
    files = {"--state": OBJECTS_FILE, "--faults": "faults.json", "--password-file": PASSWORD_FILE}
    paths = (text for option, name in files.items() for text in (option, str(folder / name)))
    options = (*paths, "--orchestration-url", orchestration_url)
    return Child(
        name="simulated-cloud",
        argv=(sys.executable, "-m", PROGRAM, "serve", "--port", str(port), *options),
        env=dict(os.environ),
        cwd=root / "run",
        ready=lambda _pid: is_healthy(auth_url(port), PROBE_SECONDS),
    )
