"""Signals to an API process at a steady rate: `python -m qa.bench.signals --rate 500 --seconds 10`.

The wait conditions of a stack expect exactly the sent signals, each with its own id: the stack completes if
and only if no signal was lost. Latency is measured from the scheduled time of a signal, not from the time a
delayed client sent it.
"""

from __future__ import annotations

import argparse
import http.client
import json
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from urllib.parse import urlsplit

import httpx

from qa.bench.processes import Watch
from qa.bench.servers import System, servers, system

PROJECT = "signals"
HANDLES = {"cfn": "CFN_SIGNAL", "token": "TOKEN_SIGNAL", "api": "NO_SIGNAL"}
CLIENTS = 16
LIMIT_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Target:
    """The URL and headers for signals to a handle."""

    method: str
    path: str
    headers: dict[str, str]


@dataclass(frozen=True, slots=True)
class Result:
    """Result of a run."""

    transport: str
    sent: int
    refused: int
    seconds: float  # from the first to the last answer
    latencies: Sequence[float]
    complete_seconds: float  # from the first signal until the stack was complete
    cpu_seconds: Mapping[str, float]  # of all processes, by role

    @property
    def p99(self) -> float:
        """The 99th percentile of the latency, in seconds."""
        return sorted(self.latencies)[int(len(self.latencies) * 0.99)]

    def __str__(self) -> str:
        """Return the run as a line of text."""
        cpu = ", ".join(f"{role} {1000 * used / self.sent:.2f}" for role, used in self.cpu_seconds.items())
        p50, worst, taken = median(self.latencies), max(self.latencies), self.sent / self.complete_seconds
        return (
            f"{self.transport}: {self.sent} signals at {self.sent / self.seconds:.0f}/s, {self.refused} "
            f"refused, p50 {p50 * 1000:.1f} ms, p99 {self.p99 * 1000:.1f} ms, max {worst * 1000:.1f} ms; "
            f"none lost, all waited for after {self.complete_seconds:.1f} s ({taken:.0f}/s taken in); "
            f"processor ms a signal: {cpu}"
        )


def measure(on: System, transport: str, rate: int, seconds: float, handles: int) -> Result:
    """Send signals for some seconds; return the result after all were processed."""
    each = max(1, int(rate * seconds / handles))
    name = f"{transport}-{time.monotonic_ns()}"
    place = _create(on, name, transport, handles, each)
    targets = _targets(on, place, transport, handles)
    host = urlsplit(on.url).netloc
    total, latencies, refused = each * handles, [0.0] * (each * handles), [0] * CLIENTS
    start = time.monotonic() + 0.5
    ends = [0.0] * CLIENTS

    def client(number: int) -> None:
        connection = http.client.HTTPConnection(host)
        for index in range(number, total, CLIENTS):
            due = start + index / rate
            time.sleep(max(0.0, due - time.monotonic()))
            target = targets[index % handles]
            body = json.dumps({"id": f"s{index // handles}", "data": "x" * 50})
            connection.request(target.method, target.path, body, target.headers)
            answer = connection.getresponse()
            answer.read()
            latencies[index] = time.monotonic() - due
            refused[number] += answer.status != 200
        ends[number] = time.monotonic()
        connection.close()

    threads = [threading.Thread(target=client, args=(number,)) for number in range(CLIENTS)]
    with Watch(on.roots) as watch:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        _wait(place, {"CREATE_COMPLETE"})
    whole = time.monotonic() - start
    return Result(
        transport, total, sum(refused), max(ends) - start, latencies, whole, watch.usage.cpu_seconds
    )


def _create(on: System, name: str, transport: str, handles: int, each: int) -> str:
    kind = "OS::Heat::WaitConditionHandle"
    # Requests with a token of the API need no credentials of the handle.
    properties = {"signal_transport": HANDLES[transport]} if transport != "api" else {}
    resources: dict[str, object] = {}
    for number in range(handles):
        resources[f"h{number}"] = {"type": kind, "properties": properties}
        resources[f"w{number}"] = {
            "type": "OS::Heat::WaitCondition",
            "properties": {"handle": {"get_resource": f"h{number}"}, "timeout": 3600, "count": each},
        }
    reported = ["token", "endpoint", "signal"]
    outputs = {
        f"h{number}": {"value": [{"get_attr": [f"h{number}", item]} for item in reported]}
        for number in range(handles)
    }
    template = {"heat_template_version": "2021-04-16", "resources": resources, "outputs": outputs}
    body = {"stack_name": name, "template": template}
    answer = httpx.post(f"{on.url}/v1/{PROJECT}/stacks", json=body, timeout=60)
    answer.raise_for_status()
    place: str = answer.json()["stack"]["links"][0]["href"]
    deadline = time.monotonic() + LIMIT_SECONDS
    while True:
        listed = httpx.get(f"{place}/resources", params={"status": "COMPLETE", "action": "CREATE"}).json()
        if len(listed["resources"]) >= handles:
            return place
        assert time.monotonic() < deadline, "the handles are not made"
        time.sleep(0.2)


def _targets(on: System, place: str, transport: str, handles: int) -> list[Target]:
    result = {
        item["output_key"]: item["output_value"] for item in httpx.get(place).json()["stack"]["outputs"]
    }
    targets = []
    for number in range(handles):
        token, endpoint, signal = result[f"h{number}"]
        if transport == "cfn":
            parts = urlsplit(json.loads(signal)["alarm_url"])
            targets.append(Target("PUT", f"{parts.path}?{parts.query}", {}))
            continue
        headers = {"Content-Type": "application/json"}
        if transport == "token":
            headers["X-Auth-Token"] = token
            targets.append(Target("POST", urlsplit(endpoint).path, headers))
        else:
            targets.append(Target("POST", f"{urlsplit(place).path}/resources/h{number}/signal", headers))
    assert on
    return targets


def _wait(place: str, states: set[str]) -> None:
    deadline = time.monotonic() + LIMIT_SECONDS
    while True:
        stack = httpx.get(f"{place}?resolve_outputs=false").json()["stack"]
        if stack["stack_status"] in states:
            return
        assert time.monotonic() < deadline, f"lost: {stack['stack_status']} {stack['stack_status_reason']}"
        time.sleep(0.2)


def main() -> None:
    """Measure as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=int, default=500, help="signals a second")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--handles", type=int, default=100)
    parser.add_argument("--transport", choices=[*HANDLES], action="append")
    chosen = parser.parse_args()
    with servers() as on, system(on, 1) as running:
        for transport in chosen.transport or HANDLES:
            print(measure(running, transport, chosen.rate, chosen.seconds, chosen.handles), flush=True)


if __name__ == "__main__":
    main()
