"""`python -m qa.conformance`: start a server, run Heat's tests against it, exit with 1 if a test fails."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from types import FrameType

import click

from qa.conformance import server
from qa.conformance.chosen import Harness, not_passed
from qa.conformance.identity import identity, log_in
from tests.e2e.running import Up, free_port

TREE = Path(__file__).parents[2]
DEFAULT = TREE.parent / "shared" / "conformance"
READY_SECONDS = 180.0  # on a machine that does other things too
PREPARED = TREE / "build" / "conformance-venv"  # the tests come from PyPI, once


@click.command()
@click.argument("tests", nargs=-1)
@click.option("--dir", "place", type=click.Path(path_type=Path), help="The harness.")
@click.option("--list", "ids", type=click.Path(exists=True, path_type=Path), help="A file of names of tests.")
@click.option("--out", type=click.Path(path_type=Path), help="Where the results are kept, as JSON.")
@click.option("--jobs", type=click.IntRange(1), default=4, show_default=True, help="Tests at a time.")
@click.option(
    "--patience",
    type=click.IntRange(1),
    default=server.PATIENCE_SECONDS,
    show_default=True,
    help="Seconds for which a test waits for a stack.",
)
def main(
    *,
    tests: tuple[str, ...],
    place: Path | None,
    ids: Path | None,
    out: Path | None,
    jobs: int,
    patience: int,
) -> None:
    """Run the published list, or the tests with a word of TESTS in their names."""
    signal.signal(signal.SIGTERM, _terminated)  # child processes are stopped at exit
    harness = Harness((place or Path(os.environ.get("CONFORMANCE_DIR") or DEFAULT)).absolute())
    if fault := harness.fault():
        sys.exit(fault)
    with tempfile.TemporaryDirectory(prefix="conformance-") as name:
        folder = Path(name)
        folder.chmod(0o711)  # the embedded database's user passes through
        ports = server.Ports(free_port(), free_port())
        endpoint = server.endpoint(ports, jobs, patience)
        results = run(harness, folder, ports, endpoint, ids and ids.absolute(), tests)
    if out is not None:
        out.write_text(json.dumps(results, indent=1))
    failed = list(not_passed(results))
    for line in failed:
        click.echo(line)
    click.echo(f"{len(results['tests']) - len(failed)} of {len(results['tests'])} passed")
    sys.exit(1 if failed or not results["tests"] else 0)


def run(
    harness: Harness,
    folder: Path,
    ports: server.Ports,
    reported: str,
    ids: Path | None,
    tests: tuple[str, ...],
) -> dict[str, list[dict[str, str]]]:
    """Run the tests against a server in `folder`; return their results. `told` receives the server's URL."""
    catalog, endpoint, out = (folder / name for name in ("catalog.yaml", "endpoint.conf", "results.json"))
    endpoint.write_text(reported)
    env = dict(os.environ)
    venv = Path(env.setdefault("CONFORMANCE_VENV", str(PREPARED)))
    env.setdefault("CONFORMANCE_WORK", str(folder))
    venv.parent.mkdir(exist_ok=True)
    if not (venv / "bin" / "python").exists():
        subprocess.run([str(harness.place / "run.sh"), str(endpoint), "--list"], env=env, check=True)
    with identity(harness.identity(venv, ports), ports.auth_url, folder / "identity.log"):
        logins = {name: log_in(ports.auth_url, name) for name in server.PROJECTS}
        catalog.write_text(server.catalog(ports, logins))
        settings = server.settings(ports, str(catalog))
        up = Up(folder / "data", port=ports.api, env=settings, workers=2)
        try:
            up.wait_ready(READY_SECONDS)
            subprocess.run(harness.command(endpoint, out, ids, tests), env=env, check=True)
        finally:
            up.stop()
    results: dict[str, list[dict[str, str]]] = json.loads(out.read_text())
    return results


def _terminated(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


if __name__ == "__main__":
    main()
