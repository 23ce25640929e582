"""A command line of the client, and a server with predefined responses."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from orchestrator.cli.main import main
from tests.unit.cli.stub import Stack, Stub, serving

TEMPLATE = "heat_template_version: 2018-08-31\nresources:\n  a: {type: OS::Heat::None}\n"
GOING_WELL = [
    ("a", "CREATE_IN_PROGRESS", "state changed"),
    ("a", "CREATE_COMPLETE", "state changed"),
    ("b", "CREATE_IN_PROGRESS", "state changed"),
    ("b", "CREATE_COMPLETE", "state changed"),
    ("", "CREATE_COMPLETE", "Stack CREATE completed successfully"),
]
Run = Callable[..., Result]


@pytest.fixture
def stub() -> Iterator[Stub]:
    with serving() as stub:
        yield stub


@pytest.fixture
def run(stub: Stub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command line in an empty folder that contains a template."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("ORCHESTRATOR_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("ORCHESTRATOR_URL", stub.url)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("TZ", "UTC")
    Path("t.yaml").write_text(TEMPLATE)
    return lambda *arguments, **more: CliRunner().invoke(main, [str(a) for a in arguments], **more)


def finished(stub: Stub, name: str = "shop", **options: object) -> Stack:
    """Put a stack there that has been created."""
    stack = stub.add(name, **options)
    stack.happen("", "CREATE_IN_PROGRESS", "Stack CREATE started")
    for step in GOING_WELL:
        stack.happen(*step)
    return stack
