"""A server, and an installed wheel, for the tests that go end to end."""

from __future__ import annotations

import subprocess
import sys
import venv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.running import Up

TREE = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def start_up() -> Iterator[Callable[..., Up]]:
    """Start `orchestrator up`; running instances are stopped after the module's tests."""
    started: list[Up] = []

    def start(*args: Any, **kwargs: Any) -> Up:
        up = Up(*args, **kwargs)
        started.append(up)
        return up

    yield start
    for up in started:
        if up.process.poll() is None:
            up.stop()
        elif up.process.stdout is not None and not up.process.stdout.closed:
            up.process.communicate()


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the tree with the tools at hand."""
    place = tmp_path_factory.mktemp("wheel")
    return built(TREE, place)


def built(tree: Path, place: Path) -> Path:
    """Build the wheel of a tree in an empty folder."""
    build = (sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(place), str(tree))
    done = subprocess.run(build, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = place.glob("*.whl")
    return wheel


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel, the wheels of `packages/` and, later in its path, the dependencies that
    the tests run with.
    """
    trees = [path.parent for path in TREE.glob("packages/*/pyproject.toml")]
    own = [built(tree, tmp_path_factory.mktemp("own")) for tree in trees]
    place = tmp_path_factory.mktemp("installed") / "venv"
    venv.create(place, with_pip=False)
    (packages,) = place.glob("lib/python3*/site-packages")
    pip = (
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(place / "bin" / "python"),
        "--disable-pip-version-check",
    )
    subprocess.run([*pip, "install", "-q", "--no-deps", "--no-index", str(wheel), *map(str, own)], check=True)
    # A plain path entry: the editable install next to the dependencies does not take effect through it.
    (packages / "dependencies.pth").write_text(f"{Path(httpx.__file__).parents[1]}\n")
    return place
