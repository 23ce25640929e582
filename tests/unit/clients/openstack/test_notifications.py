"""Objects that notifications name: those of nova, neutron and cinder, and malformed ones."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import orjson
import pytest

from orchestrator.clients.openstack.notification_queue import broker_urls
from orchestrator.clients.openstack.notifications import (
    MAX_IDS,
    Named,
    named_objects,
    read_message,
)

ADMIN = {"project_id": "admins"}


@pytest.mark.parametrize(
    ("event", "payload", "expected"),
    [
        (
            "compute.instance.delete.end",
            {"tenant_id": "p", "instance_id": "i"},
            Named("p", ("i",), urgent=True),
        ),
        (
            "instance.update",
            {"nova_object.name": "Instance", "nova_object.data": {"uuid": "i", "tenant_id": "p"}},
            Named("p", ("i",), urgent=True),
        ),
        ("port.delete.end", {"port_id": "a"}, Named("admins", ("a",), urgent=True)),
        (
            "port.update.end",
            {"port": {"id": "a", "project_id": "p", "network_id": "n", "device_id": ""}},
            Named("p", ("a", "n"), urgent=True),
        ),
        ("volume.detach.end", {"tenant_id": "p", "volume_id": "v"}, Named("p", ("v",), urgent=True)),
        ("volume.create.end", {"tenant_id": "p", "volume_id": "v"}, Named("p", ("v",))),
        ("port.update.end", None, None),
        ("port.update.end", [], None),
        ("port.update.end", {"port": "text"}, None),
        ("port.update.end", {"port": {"id": 7, "project_id": ["p"]}}, None),
        ("port.update.end", {"port_id": "x" * 300}, None),
    ],
)
def test_the_objects_of_a_notification(event: str, payload: Any, expected: Named | None):
    assert named_objects(ADMIN, event, payload) == expected


def message(event: str, payload: Any, *, envelope: bool = True) -> bytes:
    inner = {"event_type": event, "payload": payload, "_context_project_id": "admins", "priority": "INFO"}
    outer = {"oslo.version": "2.0", "oslo.message": orjson.dumps(inner).decode()}
    return orjson.dumps(outer if envelope else inner)


@pytest.mark.parametrize("envelope", [True, False])
def test_a_message_names_the_objects_of_its_payload(envelope: bool):
    body = message("port.delete.end", {"port_id": "a"}, envelope=envelope)
    assert read_message(body) == Named("admins", ("a",), urgent=True)


@pytest.mark.parametrize(
    "event", ["compute.instance.delete.start", "compute.instance.exists", "volume.usage", "image.send", "x"]
)
def test_events_without_a_change_are_left_out(event: str):
    assert read_message(message(event, {"tenant_id": "p", "instance_id": "i"})) is None


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'{"oslo.message": 7}',
        b'{"oslo.message": "{"}',
        b'{"oslo.message": "[]"}',
        b'{"event_type": ["port.delete.end"], "payload": {"id": "a"}}',
        b" " * 2_000_000,
    ],
)
def test_a_malformed_message_names_nothing(body: bytes):
    assert read_message(body) is None


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("rabbit://u:p@host/", "amqp://u:p@host//"),
        ("rabbit://u:p@host:5673/v", "amqp://u:p@host:5673/v"),
        ("rabbit://u:p@a:1,u:p@b:2/v?ssl=1", "amqp://u:p@a:1/v?ssl=1;amqp://u:p@b:2/v?ssl=1"),
        ("rabbit://u:p@a,b/", "amqp://u:p@a//;amqp://u:p@b//"),
        ("rabbit://u:p%40q@a/", "amqp://u:p%40q@a//"),
    ],
)
def test_urls_of_brokers(url: str, expected: str):
    assert broker_urls(url) == expected


def test_without_a_project_nothing_is_named():
    assert named_objects({}, "port.delete.end", {"port_id": "a"}) is None
    assert named_objects({"project_id": 7}, "port.delete.end", {"port_id": "a"}) is None


def test_a_huge_payload_is_searched_in_part():
    deep: dict[str, Any] = {}
    for number in range(5_000):
        deep = {"inner": deep, "port_id": f"p{number}"}
    found = named_objects(ADMIN, "port.update.end", deep)
    assert found is not None
    assert len(found.ids) == MAX_IDS


# oslo.messaging imports eventlet, which observes all later forks of its process.
BROKER = """
import sys
import threading
import oslo_messaging
from oslo_config import cfg
from orchestrator.clients.openstack.notifications import listener

received = []
arrived = threading.Event()

def take(named):
    received.append(named)
    arrived.set()

url = "kombu+memory:////"
listening = listener(url, ["notifications"], take)
listening.start()
oslo_messaging.set_transport_defaults(sys.argv[1])
transport = oslo_messaging.get_notification_transport(cfg.ConfigOpts(), url=url)
notifier = oslo_messaging.Notifier(transport, "test", driver="messagingv2", topics=["notifications"])
notifier.info({}, "compute.instance.delete.start", {"tenant_id": "p", "instance_id": "early"})
notifier.info({}, "scheduler.select_destinations.end", {"tenant_id": "p", "instance_id": "other"})
notifier.info({}, "compute.instance.delete.end", {"tenant_id": "p", "instance_id": "i"})
arrived.wait(120)
listening.stop()
print(received)
"""


@pytest.mark.parametrize("exchange", ["nova", "neutron", "cinder", "openstack"])  # defaults of the services
def test_notifications_arrive_over_a_broker(exchange: str):
    command = [sys.executable, "-W", "ignore", "-c", BROKER, exchange]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert run.stdout.strip() == str([Named("p", ("i",), urgent=True)]), run.stderr
