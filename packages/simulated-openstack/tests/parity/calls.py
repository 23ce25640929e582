"""Calls of a scenario, and a client that makes them at a cloud.

A call is data, so that the same scenario runs at the real cloud (`record.py`) and at the simulation
(`test_parity.py`). Text in paths and bodies may use the values that earlier calls saved: `{net}`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import httpx

ENDPOINTS: Final = {
    "keystone": "identity",
    "glance": "image",
    "nova": "compute",
    "neutron": "network",
    "cinder": "block-storage",
    "octavia": "load-balancer",
}
SECONDS: Final = 60.0  # for a call, and for a status to appear


@dataclass(frozen=True)
class Call:
    """A request; `until` repeats it until the value at a path is in the given values."""

    service: str
    method: str
    path: str
    body: Any = None
    save: Mapping[str, str] = field(default_factory=dict)  # name -> path in the answer
    headers: Mapping[str, str] = field(default_factory=dict)
    until: tuple[str, tuple[Any, ...]] | None = None
    until_status: int | None = None
    by: str = "admin"  # the user: admin, demo or none
    compare: bool = True  # record the answer


@dataclass(frozen=True)
class Answer:
    """An answer of a service."""

    status: int
    headers: Mapping[str, str]
    body: Any


class Cloud:
    """A cloud, called as its users `admin` and `demo` in the project `demo`."""

    def __init__(self, auth_url: str, password: str) -> None:
        self.client = httpx.Client(timeout=SECONDS, trust_env=False)
        self.auth_url = auth_url.rstrip("/")
        self.tokens: dict[str, str] = {}
        self.endpoints: dict[str, str] = {}
        self.values: dict[str, Any] = {}
        for user in ("admin", "demo"):
            self._log_in(user, password)

    def _log_in(self, user: str, password: str) -> None:
        domain = {"name": "Default"}
        answer = self.client.post(
            f"{self.auth_url}/auth/tokens",
            json={
                "auth": {
                    "identity": {
                        "methods": ["password"],
                        "password": {"user": {"name": user, "password": password, "domain": domain}},
                    },
                    "scope": {"project": {"name": "demo", "domain": domain}},
                }
            },
        )
        answer.raise_for_status()
        token = answer.json()["token"]
        self.tokens[user] = answer.headers["X-Subject-Token"]
        self.values |= {"project": token["project"]["id"], f"{user}_id": token["user"]["id"]}
        catalog = {entry["type"]: entry["endpoints"] for entry in token["catalog"]}
        for service, kind in ENDPOINTS.items():
            public = [e["url"] for e in catalog.get(kind, ()) if e["interface"] == "public"]
            if public:
                self.endpoints[service] = public[0].rstrip("/")
        self.endpoints["keystone"] = self.auth_url

    def close(self) -> None:
        """Close the connections."""
        self.client.close()

    def make(self, call: Call) -> Answer:
        """Make a call, repeatedly if it waits for a value; keep the values that it saves."""
        deadline = time.monotonic() + SECONDS
        while True:
            answer = self._send(call)
            if _is_awaited(call, answer):
                break
            if time.monotonic() > deadline:
                print(f"not seen: {call}")
                break
            time.sleep(0.1)
        for name, path in call.save.items():
            self.values[name] = value_at(answer.body, path)
        return answer

    def _send(self, call: Call) -> Answer:
        endpoint = self.endpoints[call.service]
        path = self.filled(call.path)
        url = endpoint + path
        if path.startswith("@"):  # below the root of the service
            url = endpoint.split("/v", 1)[0] + path[1:]
        headers = {**({} if call.by == "none" else {"X-Auth-Token": self.tokens[call.by]}), **call.headers}
        body = self.filled(call.body)
        extra: dict[str, Any] = {"content": body} if isinstance(body, bytes) else {"json": body}
        answer = self.client.request(call.method, url, headers=headers, **(extra if body is not None else {}))
        try:
            content = answer.json() if answer.content else None
        except ValueError:
            content = answer.text
        return Answer(answer.status_code, answer.headers, content)

    def filled(self, value: Any) -> Any:
        """Return a value with the saved values in place of their names."""
        if isinstance(value, str):
            for name, saved in self.values.items():
                if value == "{" + name + "}":
                    return saved
                value = value.replace("{" + name + "}", str(saved))
            return value
        if isinstance(value, dict):
            return {self.filled(key): self.filled(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.filled(item) for item in value]
        return value


def value_at(body: Any, path: str) -> Any:
    """Return the value at a path such as `network.id` or `ports.0.id`."""
    for part in path.split("."):
        body = body[int(part)] if isinstance(body, list) else body[part]
    return body


def _is_awaited(call: Call, answer: Answer) -> bool:
    if call.until_status is not None:
        return answer.status == call.until_status
    if call.until is None:
        return True
    path, values = call.until
    return answer.status < 300 and value_at(answer.body, path) in values


def run(cloud: Cloud, calls: Iterable[Call]) -> list[tuple[Call, Answer]]:
    """Make calls in order; return those with answers to compare."""
    answers = [(call, cloud.make(call)) for call in calls]
    return [(call, answer) for call, answer in answers if call.compare]
