"""Large signals to a handle: the stored data and the answers are limited."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import httpx
import pytest

from orchestrator.embedded.valkey import Valkey
from orchestrator.resources.builtin.wait_handle_base import MAX_BYTES
from tests.e2e.running import Up, eventually

KB = 1024
NUMBERS = count(1)
TEMPLATE = {
    "heat_template_version": "2021-04-16",
    "resources": {"handle": {"type": "AWS::CloudFormation::WaitConditionHandle"}},
    "outputs": {"url": {"value": {"get_resource": "handle"}}},
}


@pytest.fixture(scope="module")
def up(
    new_database: Callable[[], str],
    valkey_server: Valkey,
    broker_numbers: Iterator[int],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Up]:
    env = {
        "ORCHESTRATOR_DATABASE_URL": new_database(),
        "ORCHESTRATOR_BROKER_URL": valkey_server.url(next(broker_numbers)),
    }
    running = Up(tmp_path_factory.mktemp("floods") / "data", env=env)
    running.wait_ready(120)
    yield running
    running.stop()


@pytest.fixture
def signal(up: Up) -> Callable[..., httpx.Response]:
    """Send a signal to the URL of a new handle."""
    stacks = f"{up.url}/v1/demo/stacks"
    answer = httpx.post(stacks, json={"stack_name": f"s{next(NUMBERS)}", "template": TEMPLATE}, timeout=20)
    place = answer.json()["stack"]["links"][0]["href"]

    def shown() -> Any:
        return httpx.get(place, timeout=20).json()["stack"]

    eventually(lambda: shown()["stack_status"] == "CREATE_COMPLETE")
    url = shown()["outputs"][0]["output_value"].replace("http://127.0.0.1:8000", up.url)

    def send(id_: str, data: str) -> httpx.Response:
        body = {"Status": "SUCCESS", "Reason": "done", "Data": data, "UniqueId": id_}
        return httpx.put(url, json=body, timeout=30)

    return send


def test_large_signals_fill_a_handle_to_its_limit_and_are_answered_shortly(
    signal: Callable[..., httpx.Response],
) -> None:
    answers = []
    while not answers or answers[-1].is_success:
        answers.append(signal(str(len(answers)), "x" * 100 * KB))
        assert len(answers) < 100
    assert answers[-1].status_code == 400
    assert f"more than {MAX_BYTES // KB} KiB" in answers[-1].text
    assert max(len(answer.content) for answer in answers) < 110 * KB
    assert signal("0", "short").is_success  # in place of a large signal
