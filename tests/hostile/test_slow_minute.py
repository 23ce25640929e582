"""A minute of each slow attack on a complete server: the requests of another project keep their speed."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Final

import pytest

from tests.e2e.running import eventually
from tests.hostile.minute import JSON, TEN, Project, Times, attack_and_compare
from tests.hostile.slow import create, head, slow_server
from tests.hostile.slow_process import slow_clients

pytestmark = pytest.mark.long

FORM: Final = "Content-Type: application/x-www-form-urlencoded"


def unsigned_queries(attacker: Project) -> AbstractContextManager[object]:
    request = head("POST", "/v1/", "", FORM, length=900_000) + b"Action=ListStacks"
    return slow_clients(attacker.port, request)


def large_bodies(attacker: Project) -> AbstractContextManager[object]:
    request = head("POST", "/v1/attacker/stacks", attacker.token, JSON, length=200_000_000) + b"{"
    return slow_clients(attacker.port, request)


@contextmanager
def template_servers(attacker: Project) -> Iterator[None]:
    with slow_server() as slow:
        request = create(attacker.token, "attacker", {"stack_name": "s", "template_url": slow.url})
        with slow_clients(attacker.port, request, drips=False):
            yield


@contextmanager
def idle_connections(attacker: Project) -> Iterator[None]:
    with ExitStack() as held:
        for _ in range(1_200):  # more than a process of the API has
            with contextlib.suppress(OSError):
                address = ("127.0.0.1", attacker.port)
                held.enter_context(socket.create_connection(address, timeout=20))
        yield


@contextmanager
def webhook_receivers(attacker: Project) -> Iterator[None]:
    with slow_server() as slow:
        for _ in range(50):
            body = json.dumps({"url": slow.url}).encode()
            place = "/v1/attacker/webhooks"
            attacker.send(head("POST", place, attacker.token, JSON, length=len(body)) + body)
        attacker.create(f"ring{time.monotonic_ns()}", TEN)
        eventually(lambda: slow.connections >= 4, 30)
        yield


@pytest.mark.parametrize(
    "attack", [unsigned_queries, large_bodies, template_servers, idle_connections, webhook_receivers]
)
def test_another_project_keeps_its_speed(
    attack: Callable[[Project], AbstractContextManager[object]],
    attacker: Project,
    victim: Project,
    idle: Times,
) -> None:
    attack_and_compare(attack(attacker), attacker, victim, idle)
