"""The server that Heat's tests are run against: what its settings are, and what the harness is told of it."""

from __future__ import annotations

import configparser
import io
from dataclasses import dataclass
from hashlib import md5

import yaml

PROJECTS = ("demo", "admin")
REGION = "RegionOne"
HIDDEN_TAG = "hidden"
TEST_SECONDS = 600  # the longest one test may take
PATIENCE_SECONDS = 240  # how long a test waits for a stack, on a machine that does other things too


@dataclass(frozen=True, slots=True)
class Ports:
    """Where the server and the stand-in for Keystone listen, on loopback."""

    api: int
    identity: int


def settings(ports: Ports, catalog_file: str) -> dict[str, str]:
    """Return the environment that `orchestrator up` is started with.

    Heat's tests expect of the operator what is off by itself: letting stacks go and taking them over, a tag
    that hides, a catalog in which our own region is.
    """
    chosen = {
        "enable_stack_abandon": "true",
        "enable_stack_adopt": "true",
        "hidden_stack_tags": HIDDEN_TAG,
        "region_name": REGION,
        "catalog_file": catalog_file,
    }
    return {f"ORCHESTRATOR_{name.upper()}": value for name, value in chosen.items()}


def catalog(ports: Ports) -> str:
    """Return the operator's catalog: our own region, for the projects that the tests use."""
    projects = {_project_id(name): {"project": _project_id(name)} for name in PROJECTS}
    region = {"url": f"http://127.0.0.1:{ports.api}/v1", "projects": projects}
    return yaml.safe_dump({"regions": {REGION: region}})


def endpoint(ports: Ports, jobs: int, patience_seconds: int = PATIENCE_SECONDS) -> str:
    """Return what the harness reads: where we are, whom it speaks as, how long it waits."""
    told = configparser.ConfigParser(interpolation=None)
    told["server"] = {
        "name": "stack-orchestrator",
        "heat_url": f"http://127.0.0.1:{ports.api}/v1/{{project_id}}",
    }
    told["identity"] = {"mode": "standin", "port": str(ports.identity), "region": REGION}
    told["tests"] = {
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
    told.write(text)
    return text.getvalue()


def _project_id(name: str) -> str:
    """Return the id that the stand-in for Keystone gives a project."""
    return md5(f"project:{name}".encode(), usedforsecurity=False).hexdigest()
