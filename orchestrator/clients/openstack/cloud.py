"""The services of a cloud, as a credential in a region."""

from __future__ import annotations

import threading
from functools import cached_property
from typing import Any, Final
from weakref import WeakKeyDictionary

from orchestrator.clients.keystone.cloud_session import Cloud
from orchestrator.clients.openstack.block_storage import BlockStorage
from orchestrator.clients.openstack.compute import Compute
from orchestrator.clients.openstack.identity import Identity
from orchestrator.clients.openstack.image import Image
from orchestrator.clients.openstack.network import Network
from orchestrator.errors import Misconfigured, ProviderError

USER_AGENT: Final = "stack-orchestrator"
NO_CLOUD: Final = "this installation has no cloud: set ORCHESTRATOR_AUTH=keystone"
CALL_SECONDS: Final = 20.0

# A connection of openstacksdk for each session of keystoneauth1 and region: it keeps discovered endpoints.
_connections: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()
_lock = threading.Lock()


class OpenStack:
    """The services of a cloud. Each request ends within `deadline_seconds`."""

    def __init__(self, cloud: Cloud | None, deadline_seconds: float = CALL_SECONDS, region: str = "") -> None:
        """Send no request yet.

        Raises:
            ProviderError: there is no cloud.
        """
        if cloud is None:
            raise ProviderError(NO_CLOUD, "AuthorizationFailure")
        self.cloud, self.deadline_seconds = cloud, deadline_seconds
        self.region = region or cloud.region

    @cached_property
    def connection(self) -> Any:
        """The connection of openstacksdk."""
        return _connection(self.cloud.session(), self.region)

    @cached_property
    def compute(self) -> Compute:
        """Nova."""
        return Compute(self.connection, self.deadline_seconds)

    @cached_property
    def network(self) -> Network:
        """Neutron."""
        return Network(self.connection, self.deadline_seconds)

    @cached_property
    def block_storage(self) -> BlockStorage:
        """Cinder."""
        return BlockStorage(self.connection, self.deadline_seconds)

    @cached_property
    def image(self) -> Image:
        """Glance."""
        return Image(self.connection, self.deadline_seconds)

    @cached_property
    def identity(self) -> Identity:
        """Keystone."""
        return Identity(self.connection, self.deadline_seconds)


def _connection(session: Any, region: str) -> Any:
    """Return the connection of a session in a region."""
    with _lock:
        by_region = _connections.setdefault(session, {})
        if region not in by_region:
            by_region[region] = _connect(session, region)
        return by_region[region]


def _connect(session: Any, region: str) -> Any:
    try:
        from openstack.connection import Connection  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise Misconfigured(
            "openstacksdk is not installed: pip install 'stack-orchestrator[openstack]'"
        ) from error
    session.user_agent = USER_AGENT
    return Connection(session=session, region_name=region or None)
