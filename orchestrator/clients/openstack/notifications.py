"""Notifications of OpenStack's services, received with oslo.messaging (extra `notifications`).

Of a notification only the ids of objects and of their project are read. Services send them with
`[oslo_messaging_notifications] driver = messagingv2`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from orchestrator.errors import Misconfigured

POOL: Final = "stack-orchestrator"  # workers share a queue, beside those of other listeners
# Each service publishes in an exchange of its own, unless its `control_exchange` is set.
EXCHANGES: Final = ("nova", "neutron", "cinder", "openstack")
# Of events that begin an action, nothing can be observed yet.
EVENTS: Final = r"^(compute\.|instance\.|volume\.|snapshot\.|\w+\.(create|update|delete)\.end$)"
MAX_IDS: Final = 100  # of a notification
MAX_ID: Final = 255  # characters
MAX_NODES: Final = 500  # of a payload that are searched for ids
_PROJECT_KEYS: Final = ("project_id", "tenant_id", "tenant", "os-vol-tenant-attr:tenant_id")
_ID_KEYS: Final = ("id", "uuid", "instance_id", "instance_uuid", "volume_id", "resource_id")

Received = Callable[[str, Iterable[str]], None]  # project and ids


class Named(NamedTuple):
    """The objects that a notification names."""

    project_id: str
    ids: tuple[str, ...]


def named_objects(context: Mapping[str, Any], event_type: str, payload: Any) -> Named | None:
    """Return the objects of a notification, None without a project or without objects: pure.

    The project of the object counts before that of the caller, who may be an administrator.
    """
    if event_type.endswith(".start") or not isinstance(payload, Mapping):
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
    return Named(project, found) if project and len(project) <= MAX_ID and found else None


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
    """Receives notifications of any priority; they are acknowledged at once."""

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
            self._received(*found)

    audit = debug = warn = error = critical = sample = info


def listener(url: str, topics: Iterable[str], received: Received) -> Any:
    """Return a listener, to be started, stopped and waited for.

    Raises:
        Misconfigured: oslo.messaging is not installed, or the URL is not valid.
    """
    try:
        import oslo_messaging  # noqa: PLC0415 - an extra
        from oslo_config import cfg  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise Misconfigured("NOTIFICATIONS_URL needs the extra [notifications]") from error
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
