"""Fifty clients at once, each making, changing and removing its own stacks: no 5xx, no stack lost."""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.e2e.running import Up

SECONDS = float(os.environ.get("CROWD_SECONDS", "300"))
CLIENTS = 50
PATIENCE_SECONDS = 300.0  # for started operations, after the last request


def template(value: int) -> dict[str, object]:
    resources = {f"r{item}": {"type": "OS::Heat::RandomString"} for item in range(value % 3 + 1)}
    made = {"type": "OS::Heat::TestResource", "properties": {"value": str(value)}}
    return {"heat_template_version": "2021-04-16", "resources": {**resources, "t": made}}


class Client:
    """A user with stacks, who records every promise of the API."""

    def __init__(self, url: str, number: int) -> None:
        self.dice, self.number, self.made = random.Random(number), number, 0
        self.http = httpx.Client(base_url=f"{url}/v1/crowd", timeout=120)
        self.prefix = f"{url}/v1/crowd"
        self.kept: dict[str, str] = {}  # name -> URL of stacks that must exist
        self.gone: list[str] = []  # URLs of stacks with an accepted delete
        self.statuses: Counter[str] = Counter()

    def ask(self, method: str, place: str, expected: set[int], body: object = None) -> httpx.Response:
        answer = self.http.request(method, place, json=body)
        self.statuses[f"{method} {answer.status_code}"] += 1
        assert answer.status_code in expected, (method, place, answer.status_code, answer.text)
        return answer

    def work(self, until: float) -> None:
        while time.monotonic() < until:
            deed = self.dice.choice(["create", "update", "update", "delete", "show", "list"])
            if deed == "create" or not self.kept:
                self.create()
                continue
            name = self.dice.choice(sorted(self.kept))
            match deed:
                case "update":
                    body = {"template": template(self.dice.randrange(100))}
                    self.ask(self.dice.choice(["PUT", "PATCH"]), self.kept[name], {202}, body)
                case "delete":
                    place = self.kept.pop(name)
                    self.ask("DELETE", place, {204})
                    self.gone.append(place)
                case "show":
                    assert self.ask("GET", self.kept[name], {200}).json()["stack"]["stack_name"] == name
                case _:
                    self.ask("GET", "/stacks?limit=20", {200})

    def create(self) -> None:
        self.made += 1
        name = f"c{self.number}-{self.made}"
        answer = self.ask("POST", "/stacks", {201}, {"stack_name": name, "template": template(self.made)})
        self.kept[name] = answer.json()["stack"]["links"][0]["href"].removeprefix(self.prefix)

    def settle(self) -> None:
        """Wait until everything has ended as it was promised."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        for place in self.kept.values():
            while (state := self.state(place)).endswith("IN_PROGRESS"):
                assert time.monotonic() < deadline, (place, state)
                time.sleep(1)
            assert state in {"CREATE_COMPLETE", "UPDATE_COMPLETE"}, (place, state)
        for place in self.gone:
            while (state := self.state(place)) != "DELETE_COMPLETE":
                assert state == "DELETE_IN_PROGRESS", (place, state)
                assert time.monotonic() < deadline, place
                time.sleep(1)

    def state(self, place: str) -> str:
        state: str = self.ask("GET", place, {200}).json()["stack"]["stack_status"]
        return state


@pytest.mark.long
def test_fifty_concurrent_clients_get_correct_results(tmp_path: Path) -> None:
    up = Up(tmp_path / "data", workers=2)
    try:
        up.wait_ready(300)  # the machine may be busy
        clients = [Client(up.url, number) for number in range(CLIENTS)]
        with ThreadPoolExecutor(CLIENTS) as crowd:
            until = time.monotonic() + SECONDS
            list(crowd.map(lambda client: client.work(until), clients))
            list(crowd.map(Client.settle, clients))
        for client in clients:
            client.http.close()
        listed = {
            stack["stack_name"]
            for stack in httpx.get(f"{up.url}/v1/crowd/stacks", timeout=60).json()["stacks"]
        }
        assert listed == {name for client in clients for name in client.kept}
        statuses = sum((client.statuses for client in clients), Counter())
        print(dict(statuses))
        assert statuses["POST 201"] >= CLIENTS
    finally:
        up.stop()
