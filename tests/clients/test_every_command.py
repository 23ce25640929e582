"""No command of the stock client's orchestration plug-in goes without a test."""

from __future__ import annotations

import re
from importlib.metadata import PathDistribution
from pathlib import Path

from tests.clients.stock import HERE, environment


def test_every_command_of_the_plug_in_is_run_by_a_test_here() -> None:
    (result,) = environment().glob("lib/python3*/site-packages/python_heatclient-*.dist-info")
    entries = PathDistribution(Path(result)).entry_points
    recorded = {
        entry.name.replace("_", " ") for entry in entries if entry.group == "openstack.orchestration.v1"
    }
    said = "".join(path.read_text() for path in HERE.glob("test_*.py"))
    run = set(re.findall(r'"((?:stack|orchestration|software) [a-z ]+)"', said))
    assert len(recorded) >= 48
    assert recorded - run == set()
