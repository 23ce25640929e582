"""Objects that notifications name: those of nova, neutron and cinder, and malformed ones."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from orchestrator.clients.openstack.notifications import MAX_IDS, Named, listener, named_objects

ADMIN = {"project_id": "admins"}


@pytest.mark.parametrize(
    ("event", "payload", "expected"),
    [
        ("compute.instance.delete.end", {"tenant_id": "p", "instance_id": "i"}, Named("p", ("i",))),
        (
            "instance.update",
            {"nova_object.name": "Instance", "nova_object.data": {"uuid": "i", "tenant_id": "p"}},
            Named("p", ("i",)),
        ),
        ("port.delete.end", {"port_id": "a"}, Named("admins", ("a",))),
        (
            "port.update.end",
            {"port": {"id": "a", "project_id": "p", "network_id": "n", "device_id": ""}},
            Named("p", ("a", "n")),
        ),
        ("volume.detach.end", {"tenant_id": "p", "volume_id": "v"}, Named("p", ("v",))),
        ("compute.instance.delete.start", {"tenant_id": "p", "instance_id": "i"}, None),
        ("port.update.end", None, None),
        ("port.update.end", [], None),
        ("port.update.end", {"port": "text"}, None),
        ("port.update.end", {"port": {"id": 7, "project_id": ["p"]}}, None),
        ("port.update.end", {"port_id": "x" * 300}, None),
    ],
)
def test_the_objects_of_a_notification(event: str, payload: Any, expected: Named | None):
    assert named_objects(ADMIN, event, payload) == expected


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


@pytest.mark.parametrize("exchange", ["nova", "neutron", "cinder", "openstack"])  # defaults of the services
def test_notifications_arrive_over_a_broker(exchange: str):
    oslo_messaging = pytest.importorskip("oslo_messaging")
    from oslo_config import cfg

    received: list[Any] = []
    arrived = threading.Event()

    def take(project_id: str, ids: Any) -> None:
        received.append((project_id, list(ids)))
        arrived.set()

    url = "kombu+memory:////"
    listening = listener(url, ["notifications"], take)
    listening.start()
    try:
        oslo_messaging.set_transport_defaults(exchange)
        transport = oslo_messaging.get_notification_transport(cfg.ConfigOpts(), url=url)
        notifier = oslo_messaging.Notifier(transport, "test", driver="messagingv2", topics=["notifications"])
        notifier.info({}, "compute.instance.delete.start", {"tenant_id": "p", "instance_id": "early"})
        notifier.info({}, "scheduler.select_destinations.end", {"tenant_id": "p", "instance_id": "other"})
        notifier.info({}, "compute.instance.delete.end", {"tenant_id": "p", "instance_id": "i"})
        assert arrived.wait(30)
    finally:
        oslo_messaging.set_transport_defaults("openstack")
        listening.stop()
    assert received == [("p", ["i"])]
