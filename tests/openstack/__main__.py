"""Run the tests of OpenStack's types on a real control plane.

    python -m tests.openstack [SCRIPTS]     a directory with `install.sh`, `start.sh`, `stop.sh`, `env.sh`

The scripts are copied to `.cache/openstack`, where the control plane is installed, started and stopped. With
`OPENSTACK_DIR`, a directory with a running control plane, nothing is installed or stopped. Exits with the
status of pytest.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT.parent / "shared" / "openstack"
OWN = ROOT / ".cache" / "openstack"
INSTALLED = "venv"


@contextmanager
def control_plane(scripts: Path) -> Iterator[Path]:
    """Yield the directory of a running control plane; it is stopped at the end.

    Raises:
        SystemExit: there are no scripts.
        subprocess.CalledProcessError: a script failed.
    """
    if not (scripts / "start.sh").exists():
        raise SystemExit(f"{scripts} has no start.sh; set OPENSTACK_DIR to a running control plane")
    shutil.copytree(scripts, OWN, dirs_exist_ok=True)
    if not (OWN / INSTALLED).exists():
        subprocess.run(["./install.sh"], cwd=OWN, check=True)
    try:
        subprocess.run(["./start.sh"], cwd=OWN, check=True)
        yield OWN
    finally:
        subprocess.run(["./stop.sh"], cwd=OWN, check=True)


def run_tests(directory: Path) -> int:
    """Run the tests on the control plane; return the exit status of pytest."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "tests/openstack"]
    environment = os.environ | {"OPENSTACK_DIR": str(directory)}
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def main() -> int:
    """Run the tests; return the exit status."""
    if directory := os.environ.get("OPENSTACK_DIR"):
        return run_tests(Path(directory))
    with control_plane(Path(sys.argv[1]) if len(sys.argv) > 1 else SCRIPTS) as running:
        return run_tests(running)


if __name__ == "__main__":
    sys.exit(main())
