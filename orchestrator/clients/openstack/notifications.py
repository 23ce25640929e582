"""Notifications of OpenStack's services.

Of a notification only the ids of objects and of their project are read. Services send them with
`[oslo_messaging_notifications] driver = messagingv2`. Those in RabbitMQ are read directly
(`notification_queue.py`), other brokers' with oslo.messaging (extra `notifications`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

import orjson

from orchestrator.clients.openstack.notification_queue import SCHEMES, NotificationQueue
from orchestrator.errors import Misconfigured

POOL: Final = "stack-orchestrator"  # workers share a queue, beside the queues of other listeners
# Each service publishes in its own exchange, unless its `control_exchange` is set.
EXCHANGES: Final = ("nova", "neutron", "cinder", "openstack")
# Of events that begin an action, nothing can be observed yet; reports of usage do not state a change.
EVENTS: Final = (
    r"^(?!.*\.(start|exists|usage)$)"
    r"(compute\.|instance\.|volume\.|snapshot\.|\w+\.(create|update|delete)\.end$)"
)
_OBSERVED: Final = re.compile(EVENTS)
# Events that often report a fault: in a flood they come before the others.
_URGENT: Final = re.compile(r"\.(delete|soft_delete|update|error|shutdown|power_off|detach)(\.|$)")
MAX_BODY: Final = 1_000_000  # bytes of a message
MAX_IDS: Final = 100  # of a notification
MAX_ID: Final = 255  # characters
MAX_NODES: Final = 500  # of a payload that are searched for ids
_PROJECT_KEYS: Final = ("project_id", "tenant_id", "tenant", "os-vol-tenant-attr:tenant_id")
_ID_KEYS: Final = ("id", "uuid", "instance_id", "instance_uuid", "volume_id", "resource_id")
_ENVELOPE: Final = "oslo.message"  # the message inside, as a text


class Named(NamedTuple):
    """The objects that a notification names."""

    project_id: str
    ids: tuple[str, ...]
    urgent: bool = False  # the event often reports a fault


Received = Callable[[Named], None]


def read_message(body: bytes) -> Named | None:
    """Return the objects that a message of oslo.messaging names, None if there is nothing to observe: pure.
    A malformed message names nothing.
    """
    if len(body) > MAX_BODY:
        return None
    try:
        message = orjson.loads(body)
        if isinstance(message, Mapping) and _ENVELOPE in message:
            message = orjson.loads(message[_ENVELOPE])
    except (ValueError, TypeError):
        return None
    if not isinstance(message, Mapping):
        return None
    event_type = message.get("event_type")
    if not isinstance(event_type, str) or not _OBSERVED.match(event_type):
        return None
    caller = {key: message.get(f"_context_{key}") for key in ("project_id", "tenant")}
    return named_objects(caller, event_type, message.get("payload"))


def named_objects(context: Mapping[str, Any], event_type: str, payload: Any) -> Named | None:
    """Return the objects of a notification, None without a project or without objects: pure.

    The object's project counts before the caller's, who may be an administrator.
    """
    if not isinstance(payload, Mapping):
        return None
    project, ids = "", dict[str, None]()
    for values in _maps(payload):
        project = project or next((v for key in _PROJECT_KEYS if isinstance(v := values.get(key), str)), "")
        for key, value in values.items():
            is_id = key in _ID_KEYS or (str(key).endswith("_id") and key not in _PROJECT_KEYS)
            if is_id and isinstance(value, str) and 0 < len(value) <= MAX_ID:
                ids[value] = None
    caller = context.get("project_id") or context.get("tenant")
    project = project or (caller if isinstance(caller, str) else "")
    found = tuple(ids)[:MAX_IDS]
    if not project or len(project) > MAX_ID or not found:
        return None
    return Named(project, found, _URGENT.search(event_type) is not None)


def _maps(payload: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    """Yield the maps of a payload, the outer ones first: versioned notifications nest their values."""
    left: list[Any] = [payload]
    for _ in range(MAX_NODES):
        if not left:
            return
        value = left.pop(0)
        if isinstance(value, Mapping):
            yield value
            left += [inner for inner in value.values() if isinstance(inner, Mapping | list)]
        elif isinstance(value, list):
            left += value[:MAX_NODES]


class Endpoint:
    """Receives notifications of any priority from oslo.messaging; they are acknowledged at once."""

    def __init__(self, received: Received) -> None:
        """Select the events by their type."""
        from oslo_messaging import NotificationFilter  # noqa: PLC0415 - an extra

        self.filter_rule = NotificationFilter(event_type=EVENTS)
        self._received = received

    def info(
        self, context: Mapping[str, Any], publisher: str, event_type: str, payload: Any, metadata: Any
    ) -> None:
        """Take a notification."""
        del publisher, metadata
        found = named_objects(context, event_type, payload)
        if found is not None:
            self._received(found)

    audit = debug = warn = error = critical = sample = info


def listener(url: str, topics: Iterable[str], received: Received) -> Any:
    """Return a listener, to be started and stopped.

    Raises:
        Misconfigured: oslo.messaging is required and not installed, or the URL is not valid.
    """
    if url.partition("://")[0] in SCHEMES:

        def take(body: bytes) -> None:
            if (found := read_message(body)) is not None:
                received(found)

        return NotificationQueue(url, POOL, EXCHANGES, list(topics), take)
    try:
        import oslo_messaging  # noqa: PLC0415 - an extra
        from oslo_config import cfg  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise Misconfigured("NOTIFICATIONS_URL needs the extra [notifications] for this broker") from error
    try:
        transport = oslo_messaging.get_notification_transport(cfg.ConfigOpts(), url=url)
    except Exception as error:  # of the driver
        raise Misconfigured(f"NOTIFICATIONS_URL is not valid: {type(error).__name__}") from error
    return oslo_messaging.get_notification_listener(
        transport,
        [oslo_messaging.Target(exchange=exchange, topic=topic) for topic in topics for exchange in EXCHANGES],
        [Endpoint(received)],
        executor="threading",
        pool=POOL,
    )
