"""The stacks that schemathesis finds, and how it is run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from orchestrator.template.versions import LATEST

PROJECT = "fuzz"
CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,"
    "response_headers_conformance,response_schema_conformance"
)
TEMPLATE = {
    "heat_template_version": LATEST,
    "parameters": {"length": {"type": "number", "default": 12}},
    "resources": {
        "one": {"type": "OS::Heat::RandomString", "properties": {"length": {"get_param": "length"}}},
        "two": {"type": "OS::Heat::Value", "depends_on": "one", "properties": {"value": "fixed"}},
    },
    "outputs": {"it": {"value": {"get_attr": ["two", "value"]}}},
}
Post = Callable[[str, dict[str, Any]], Any]  # path and body -> the answer's JSON


def populate(post: Post, stacks: int = 6) -> list[dict[str, str]]:
    """Create stacks with every kind of content; return the path parameters that lead to it."""
    places = []
    config = post(f"/v1/{PROJECT}/software_configs", {"name": "c", "group": "script", "config": "echo"})
    config_id = config["software_config"]["id"]
    for number in range(stacks):
        name = f"fuzzed-{number}"
        made = post(f"/v1/{PROJECT}/stacks", {"stack_name": name, "template": TEMPLATE})["stack"]
        deployment = post(
            f"/v1/{PROJECT}/software_deployments", {"config_id": config_id, "server_id": made["id"]}
        )
        places.append(
            {
                "project_id": PROJECT,
                "stack_name": name,
                "stack_id": made["id"],
                "resource_name": "one",
                "key": "it",
                "number": "1",
                "before": "1",
                "after": "1",
                "type_name": "OS::Heat::RandomString",
                "version": f"heat_template_version.{LATEST}",
                "server_id": made["id"],
                "deployment_id": deployment["software_deployment"]["id"],
                "config_id": config_id,
            }
        )
    return places


def run(
    url: str, places: list[dict[str, str]], folder: Path, *extra: str
) -> subprocess.CompletedProcess[str]:
    """Run schemathesis on a server; the output has its findings, with a command that repeats each."""
    schemathesis = Path(sys.executable).parent / "schemathesis"
    return subprocess.run(
        (
            *(str(schemathesis), "run", f"{url}/openapi.json", "--url", url),
            *("--checks", CHECKS, "--request-timeout", "60", "--suppress-health-check", "all"),
            *("--max-redirects", "0", "--warnings", "off", "--report-dir", str(folder)),
            *extra,
        ),
        cwd=folder,
        env={
            **os.environ,
            "FUZZ_PLACES": json.dumps(places),
            "SCHEMATHESIS_HOOKS": "qa.fuzz.hooks",
            "PYTHONPATH": str(Path(__file__).resolve().parents[2]),
        },
        capture_output=True,
        text=True,
        check=False,
    )
