"""Heat's own tests of servers and networks, on a running control plane (`OPENSTACK_DIR`).

    python -m qa.acceptance.heat_tests [TEST ...]

The tests come from the harness next to this repository. Without names, those run that need neutron, or nova,
glance and neutron, and neither SSH nor other services. The orchestrator is in the catalog while they
run. Exits with 1 if a test fails.
"""

from __future__ import annotations

import configparser
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click

from orchestrator.config import PREFIX
from qa.acceptance.guests import scripts_run
from qa.acceptance.hypervisor import images_uploaded
from qa.acceptance.installation import chosen_directory, installation, registered
from qa.conformance.__main__ import DEFAULT, PREPARED
from qa.conformance.chosen import not_passed
from qa.conformance.server import HIDDEN_TAG

NEEDED: Final = (frozenset({"neutron"}), frozenset({"nova", "neutron", "glance"}))
SETTINGS: Final = {
    f"{PREFIX}ENABLE_STACK_ABANDON": "true",
    f"{PREFIX}ENABLE_STACK_ADOPT": "true",
    f"{PREFIX}HIDDEN_STACK_TAGS": HIDDEN_TAG,
    # A trust cannot be delegated again to a stack in another orchestrator.
    f"{PREFIX}DEFERRED_AUTH_METHOD": "application_credential",
}
TEST_SECONDS, STACK_SECONDS = 1_200, 600


def configuration(credentials: Mapping[str, str], jobs: int) -> configparser.ConfigParser:
    """Return the configuration of the harness."""
    password = credentials["OS_PASSWORD"]
    written = configparser.ConfigParser(interpolation=None)
    written["server"] = {"name": "stack-orchestrator"}
    written["identity"] = {
        "mode": "keystone",
        "auth_url": credentials["OS_AUTH_URL"],
        "username": "demo",
        "password": password,
        "project_name": "demo",
        "admin_username": "admin",
        "admin_password": password,
        "admin_project_name": "demo",
        "region": credentials["OS_REGION_NAME"],
    }
    written["tests"] = {
        "build_timeout": str(STACK_SECONDS),
        "build_interval": "1",
        "limit": str(TEST_SECONDS),
        "jobs": str(jobs),
        "convergence": "true",
        "hidden_stack_tag": HIDDEN_TAG,
        "image_ref": "cirros",
        "minimal_image_ref": "cirros",
        "instance_type": "m1.small",
        "minimal_instance_type": "m1.tiny",
        "keypair_name": "",
        "services": "nova,glance,neutron,cinder",
    }
    return written


def chosen_tests(run: Path, config: Path, folder: Path, env: Mapping[str, str]) -> list[str]:
    """Return the names of the tests that need these services only."""
    listed = folder / "inventory.json"
    subprocess.run([str(run), str(config), "--inventory", str(listed)], env=dict(env), check=True)
    return [row["id"] for row in json.loads(listed.read_text()) if frozenset(row["needs"]) in NEEDED]


@click.command()
@click.argument("tests", nargs=-1)
@click.option("--jobs", default=2, show_default=True, help="Tests at a time.")
@click.option("--out", type=click.Path(path_type=Path), help="Where the results are kept, as JSON.")
def main(tests: tuple[str, ...], jobs: int, out: Path | None) -> None:
    """Run Heat's tests; exit with 1 if a test fails."""
    directory = chosen_directory()
    harness = Path(os.environ.get("CONFORMANCE_DIR") or DEFAULT).absolute()
    with tempfile.TemporaryDirectory(prefix="heat-tests-") as name:
        folder = Path(name)
        config, ids, results_file = folder / "endpoint.conf", folder / "ids", folder / "results.json"
        env = dict(os.environ)
        env.setdefault("CONFORMANCE_VENV", str(PREPARED))
        env["CONFORMANCE_WORK"] = str(folder)
        PREPARED.parent.mkdir(exist_ok=True)
        with (
            installation(directory, workers=2, settings=SETTINGS) as on,
            registered(on),
            scripts_run(on),
            images_uploaded(on),
        ):
            with config.open("w") as file:
                configuration(on.credentials, jobs).write(file)
            chosen = list(tests) or chosen_tests(harness / "run.sh", config, folder, env)
            ids.write_text("\n".join(chosen))
            command = [str(harness / "run.sh"), str(config), "--ids", str(ids), "--all"]
            subprocess.run([*command, "--out", str(results_file)], env=env, check=False)
        results: dict[str, list[dict[str, Any]]] = json.loads(results_file.read_text())
    if out is not None:
        out.write_text(json.dumps(results, indent=1))
    failed = list(not_passed(results))
    for line in failed:
        click.echo(line)
    click.echo(f"{len(results['tests']) - len(failed)} of {len(results['tests'])} passed")
    sys.exit(1 if failed or not results["tests"] else 0)


if __name__ == "__main__":
    main()
