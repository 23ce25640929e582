"""The harness's stand-in for Keystone, running while the tests do: any password is right."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx

from qa.conformance.server import PASSWORD, Login
from tests.e2e.running import eventually

READY_SECONDS = 60.0


@contextlib.contextmanager
def identity(command: Sequence[str], auth_url: str, log: Path) -> Iterator[None]:
    """Run it for a block that begins when it answers."""
    with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=out) as process:
        try:
            eventually(lambda: _answers(auth_url) or process.poll() is not None, READY_SECONDS)
            assert process.poll() is None, f"the stand-in for Keystone ended: {log.read_text()}"
            yield
        finally:
            process.terminate()


def log_in(auth_url: str, name: str) -> Login:
    """Return the login of a user in the project of the same name."""
    domain = {"name": "Default"}
    body: dict[str, Any] = {
        "identity": {
            "methods": ["password"],
            "password": {"user": {"name": name, "password": PASSWORD, "domain": domain}},
        },
        "scope": {"project": {"name": name, "domain": domain}},
    }
    response = httpx.post(f"{auth_url}/auth/tokens", json={"auth": body}, trust_env=False, timeout=30.0)
    response.raise_for_status()
    return Login(response.json()["token"]["project"]["id"], response.headers["X-Subject-Token"])


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, trust_env=False, timeout=5.0).is_success
    except httpx.HTTPError:
        return False
