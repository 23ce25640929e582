"""The simulated cloud answers as the real control plane did (recordings of `record.py`)."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator

import pytest

from parity.calls import Cloud, run
from parity.comparison import differences, recorded
from parity.record import FOLDER, SCENARIOS
from simulated_openstack.cloud import running_cloud

PASSWORD = "osfakepw"  # of the control plane that was recorded


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    """A new simulated cloud."""
    with running_cloud(password=PASSWORD) as simulated:
        for image in simulated.glance.images.table:  # as those of the control plane that was recorded
            image |= {"disk_format": "raw", "virtual_size": image["size"]}
        client = Cloud(simulated.auth_url, PASSWORD)
        yield client
        client.close()


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.json")))
def test_simulated_answers_equal_the_real_ones(name: str, cloud: Cloud) -> None:
    calls = importlib.import_module(f"parity.{name}_calls").CALLS
    real = json.loads((FOLDER / f"{name}.json").read_text())
    simulated = [json.loads(json.dumps(recorded(call, answer))) for call, answer in run(cloud, calls)]
    assert len(simulated) == len(real)
    found = [
        f"{number} {one['call']}: {text}"
        for number, (one, other) in enumerate(zip(real, simulated, strict=True))
        for text in differences(one, other)
    ]
    assert not found, "\n".join(found)


def test_a_recording_exists_for_each_scenario() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} <= set(SCENARIOS)
