"""Scripted and random faults."""

from __future__ import annotations

import json
from pathlib import Path

from simulated_openstack.faults import Faults


def test_a_rule_applies_to_its_service_method_and_path_as_often_as_it_says() -> None:
    faults = Faults()
    faults.set(
        {"api": [{"service": "nova", "method": "POST", "path": "/servers$", "status": 503, "times": 1}]}
    )
    assert faults.api("neutron", "POST", "/v2.0/servers") is None
    assert faults.api("nova", "GET", "/v2.1/servers") is None
    fault = faults.api("nova", "POST", "/v2.1/servers")
    assert fault is not None
    assert fault.status == 503
    assert faults.api("nova", "POST", "/v2.1/servers") is None


def test_random_faults_repeat_with_their_seed() -> None:
    def run() -> list[bool]:
        faults = Faults()
        faults.set({"seed": 7, "api": [{"drop": True, "probability": 0.5}]})
        return [faults.api("nova", "GET", "/") is not None for _ in range(20)]

    assert run() == run()
    assert len(set(run())) == 2


def test_a_changed_file_replaces_the_faults(tmp_path: Path) -> None:
    file = tmp_path / "faults.json"
    faults = Faults(file)
    assert faults.action("spawn", "web").error is None
    file.write_text(json.dumps({"spawn": {"match": "^web", "error": "broken"}}))
    assert faults.action("spawn", "web").error == "broken"
    assert faults.action("spawn", "db").error is None
    file.unlink()
    assert faults.action("spawn", "web").error is None
