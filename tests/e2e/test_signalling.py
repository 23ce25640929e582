"""The signal commands of a template work on a server: a shell runs them, and no kill loses a signal."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from orchestrator.embedded.data_dir import DataDir
from orchestrator.security.tokens import create_token
from orchestrator.store.connections.database import Database
from tests import constants
from tests.e2e.running import Up, eventually

SOON = constants.environment({"lease_seconds": 3.0, "re_enqueue_seconds": 1.0})
HANDLE = "OS::Heat::WaitConditionHandle"
AWS_HANDLE = "AWS::CloudFormation::WaitConditionHandle"


class Stack:
    """A stack of a project, over HTTP."""

    def __init__(self, up: Up, name: str, resources: dict[str, Any], outputs: dict[str, Any]) -> None:
        database = Database(DataDir(up.data_dir).postgres().url())
        self.headers = {"X-Auth-Token": create_token(database, "demo")}
        database.engine.dispose()
        template = {
            "heat_template_version": "2021-04-16",
            "resources": resources,
            "outputs": {key: {"value": value} for key, value in outputs.items()},
        }
        body = {"stack_name": name, "template": template}
        answer = httpx.post(f"{up.url}/v1/demo/stacks", json=body, headers=self.headers, timeout=20)
        assert answer.status_code == 201, answer.text
        self.place = answer.json()["stack"]["links"][0]["href"]

    def get(self, below: str = "") -> Any:
        """Return the resource, or None while the API is unreachable."""
        with contextlib.suppress(httpx.HTTPError):
            answer = httpx.get(f"{self.place}{below}", headers=self.headers, timeout=10)
            if answer.is_success:
                return answer.json()
        return None

    def status(self) -> str:
        shown = self.get("?resolve_outputs=false")
        return shown["stack"]["stack_status"] if shown else ""

    def output(self, key: str) -> Any:
        """Return an output once it is there."""
        return eventually(lambda: (self.get(f"/outputs/{key}") or {}).get("output", {}).get("output_value"))


@pytest.fixture(scope="module")
def up(start_up: Callable[..., Up], tmp_path_factory: pytest.TempPathFactory) -> Up:
    env = {**SOON, "ORCHESTRATOR_AUTH": "token"}
    return start_up(tmp_path_factory.mktemp("up") / "data", env=env, workers=1).wait_ready(90)


def shell(command: str) -> str:
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def waiting_for(handle: str, count: int = 1) -> dict[str, Any]:
    names = ("Handle", "Timeout", "Count") if handle == AWS_HANDLE else ("handle", "timeout", "count")
    kind = "AWS::CloudFormation::WaitCondition" if handle == AWS_HANDLE else "OS::Heat::WaitCondition"
    values = ({"get_resource": "h"}, 600, count)
    return {
        "h": {"type": handle},
        "w": {"type": kind, "properties": dict(zip(names, values, strict=True))},
    }


def test_the_command_of_a_handle_signals_as_it_is(up: Up) -> None:
    stack = Stack(up, "curl", waiting_for(HANDLE, 2), {"it": {"get_attr": ["h", "curl_cli"]}})
    command = stack.output("it")
    for data in ('{"status": "SUCCESS", "data": "one"}', '{"data": "two"}'):
        assert "200 OK" in shell(f"{command} --data-binary {shlex.quote(data)}")
    eventually(lambda: stack.status() == "CREATE_COMPLETE")
    httpx.delete(stack.place, headers=stack.headers)
    eventually(lambda: stack.status() == "DELETE_COMPLETE")
    assert "401" in shell(command).splitlines()[0]


def test_the_url_of_a_handle_signals_as_cloudformations_tools_use_it(up: Up) -> None:
    stack = Stack(up, "cfn", waiting_for(AWS_HANDLE), {"it": {"get_resource": "h"}})
    eventually(lambda: stack.output("it").startswith("http"))  # until it is made it is called by its name
    url = stack.output("it")
    said = json.dumps({"Status": "SUCCESS", "Reason": "ok", "Data": "d", "UniqueId": "u"})
    command = f"curl -s -X PUT -H 'Content-Type:' --data-binary {shlex.quote(said)} {shlex.quote(url)}"
    assert json.loads(shell(command)) == {
        "resource": "h",
        "metadata": {"u": {"Status": "SUCCESS", "Reason": "ok", "Data": "d"}},
    }
    assert "AccessDenied" in shell(command.replace("Signature=", "Signature=x"))
    eventually(lambda: stack.status() == "CREATE_COMPLETE")


def test_no_accepted_signal_is_lost_by_kills(up: Up) -> None:
    handles, each = 4, 40
    resources: dict[str, Any] = {}
    for number in range(handles):
        item = waiting_for(HANDLE, each)
        item["h"]["properties"] = {"signal_transport": "CFN_SIGNAL"}
        item["w"]["properties"]["handle"] = {"get_resource": f"h{number}"}
        resources |= {f"h{number}": item["h"], f"w{number}": item["w"]}
    outputs = {f"h{number}": {"get_attr": [f"h{number}", "signal"]} for number in range(handles)}
    stack = Stack(up, "kills", resources, outputs)
    urls = [json.loads(stack.output(f"h{number}"))["alarm_url"] for number in range(handles)]
    over = threading.Event()
    accepted = [0] * handles

    def send(number: int) -> None:
        """Send each signal until it is accepted: exactly once as seen by the sender."""
        for index in range(each):
            while not over.is_set():
                with contextlib.suppress(httpx.HTTPError):
                    answer = httpx.put(urls[number], json={"id": f"s{index}"}, timeout=5)
                    if answer.status_code == 200:
                        accepted[number] += 1
                        break
                time.sleep(0.05)
            time.sleep(0.1)

    senders = [threading.Thread(target=send, args=(number,)) for number in range(handles)]
    for sender in senders:
        sender.start()
    kills = 0
    try:
        while any(sender.is_alive() for sender in senders) and kills < 12:
            for victim in ("gunicorn", "-n provider", "-n check"):
                before = sum(accepted)
                with contextlib.suppress(ProcessLookupError, ValueError):
                    os.kill(up.child(victim), signal.SIGKILL)
                    kills += 1
                eventually(
                    lambda before=before: (
                        sum(accepted) > before or not any(sender.is_alive() for sender in senders)
                    )
                )
        for sender in senders:
            sender.join(120)
    finally:
        over.set()
    assert kills > 3
    assert accepted == [each] * handles
    eventually(lambda: stack.status() == "CREATE_COMPLETE", 120)
    for number in range(handles):
        reported = eventually(lambda number=number: stack.get(f"/resources/h{number}/metadata"))
        assert sorted(reported["metadata"]) == sorted(f"s{index}" for index in range(each))
