"""The turns of a worker's event loop, with kombu's loop and poller."""

import math
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from uuid import UUID

import pytest
from kombu.asynchronous import Hub
from kombu.utils import json as kombu_json

from tasks.broker_connections import REGISTER_SECONDS, Turn, decoded


class Sockets:
    """The sockets of a transport: pipes. `requests` counts the requests for messages."""

    def __init__(self) -> None:
        self.fds: dict[int, str] = {}
        self.requests = 0
        self.writers: list[int] = []

    def open(self) -> int:
        reader, writer = os.pipe()
        self.fds[reader] = "reader"
        self.writers.append(writer)
        return reader

    def on_poll_start(self) -> None:
        self.requests += 1

    def close(self) -> None:
        for descriptor in (*self.fds, *self.writers):
            os.close(descriptor)


class Loop:
    """A turn with kombu's hub."""

    def __init__(self, sockets: Sockets) -> None:
        self.hub, self.sockets, self.now, self.registrations = Hub(), sockets, 100.0, 0
        self.turn = Turn(sockets, self.hub.readers, self.register, clock=lambda: self.now)

    def register(self) -> None:
        self.registrations += 1
        self.sockets.on_poll_start()
        for descriptor in self.sockets.fds:
            self.hub.add_reader(descriptor, os.read, descriptor, 1)

    def is_heard(self, number: int) -> bool:
        """Whether the loop notices data for the socket of this number."""
        os.write(self.sockets.writers[number], b"x")
        ready = [descriptor for descriptor, _ in self.hub.poller.poll(0) or ()]
        return list(self.sockets.fds)[number] in ready


@pytest.fixture
def loop() -> Iterator[Loop]:
    sockets = Sockets()
    made = Loop(sockets)
    yield made
    made.hub.close()
    sockets.close()


def test_messages_are_requested_in_every_turn_and_known_sockets_are_not_registered_again(loop: Loop) -> None:
    loop.sockets.open()
    for _ in range(5):
        loop.turn()
    assert loop.registrations == 1
    assert loop.sockets.requests == 5
    assert loop.is_heard(0)


def test_a_new_socket_is_heard_in_the_next_turn(loop: Loop) -> None:
    loop.sockets.open()
    loop.turn()
    loop.sockets.open()
    loop.turn()
    assert loop.is_heard(1)


def test_a_socket_that_the_poller_has_lost_is_heard_again_after_a_second(loop: Loop) -> None:
    lost = loop.sockets.open()
    loop.turn()
    loop.hub.poller.unregister(lost)
    loop.turn()
    assert not loop.is_heard(0)
    loop.now += REGISTER_SECONDS
    loop.turn()
    assert loop.is_heard(0)


URLS = ("redis://localhost", "rediss://localhost", "redis+socket:///x?virtual_host=0")
CHOSEN = """
import sys
from kombu import Connection
from tasks.broker_connections import install_transport
install_transport()
print(*{Connection(url).get_transport_cls().__module__ for url in sys.argv[1:]})
"""
DECODERS = """
from kombu import serialization
from kombu.transport import redis
from tasks import broker_connections
broker_connections.orjson.loads = lambda text: f"orjson: {text}"
broker_connections.install_transport()
print(redis.loads('{"body": ""}'))
print(serialization.loads(b"[[7], 1]", "application/json", "utf-8", accept={"application/json"}))
"""


def test_workers_use_this_transport_for_every_url_of_a_broker() -> None:
    """In its own process: kombu keeps the class that the first connection of a scheme had."""
    command = [sys.executable, "-c", CHOSEN, *URLS]
    chosen = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    assert chosen.split() == ["tasks.broker_connections"]


def test_workers_decode_the_envelope_and_the_body_of_a_message_with_orjson() -> None:
    """In its own process: the decoders are kombu's, and global."""
    command = [sys.executable, "-c", DECODERS]
    printed = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    assert printed.splitlines() == ['orjson: {"body": ""}', "orjson: b'[[7], 1]'"]


@pytest.mark.parametrize(
    "value",
    [
        [[[7], 1], {}, {"callbacks": None, "chord": "ä"}],
        {"at": datetime(2026, 1, 2, tzinfo=UTC), "id": UUID(int=7), "raw": b"\xff"},
        {"limit": math.inf},
        "__type__",
    ],
)
def test_a_message_is_decoded_as_kombu_does(value: object) -> None:
    text = kombu_json.dumps(value)
    assert decoded(text) == decoded(text.encode()) == kombu_json.loads(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "Expecting value"),
        ("{", "Expecting property name"),
        (b"\xff", "can't decode byte"),
        ('{"__type__": "unknown", "__value__": 1}', "Unsupported type"),
    ],
)
def test_what_is_no_message_is_a_value_error(text: str | bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        decoded(text)
