"""The services of a cloud, as a credential in a region."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final
from weakref import WeakKeyDictionary

from orchestrator.clients.keystone.cloud_session import Cloud
from orchestrator.clients.openstack.block_storage import BlockStorage
from orchestrator.clients.openstack.compute import Compute
from orchestrator.clients.openstack.identity import Identity
from orchestrator.clients.openstack.image import Image
from orchestrator.clients.openstack.networking.load_balancing import LoadBalancing
from orchestrator.clients.openstack.networking.network import Network
from orchestrator.clients.openstack.object_collections import Collections
from orchestrator.clients.openstack.platform_services.alarming import Alarming
from orchestrator.clients.openstack.platform_services.dns import Dns
from orchestrator.clients.openstack.platform_services.key_manager import KeyManager
from orchestrator.clients.openstack.platform_services.object_store import ObjectStore
from orchestrator.clients.openstack.platform_services.workflow import Workflows
from orchestrator.clients.openstack.service_api import ListLag
from orchestrator.clients.openstack.session.session_transport import SessionTransport
from orchestrator.clients.openstack.transport import Transport
from orchestrator.clients.provider_calls import ProviderCalls
from orchestrator.errors import ProviderError

NO_CLOUD: Final = "this installation has no cloud: set ORCHESTRATOR_AUTH=keystone"
CALL_SECONDS: Final = 20.0
RESERVED: Final = {api.service: api.service_type for api in (Compute, Network, BlockStorage)}
APIS: Final[Mapping[str, type[Collections]]] = {
    api.service: api
    for api in (
        *(Compute, Network, BlockStorage, Image, LoadBalancing, Identity),
        *(Alarming, Dns, KeyManager, Workflows),
    )
}

# A transport for each session of keystoneauth1 and region: it keeps discovered endpoints.
_transports: WeakKeyDictionary[Any, dict[str, Transport]] = WeakKeyDictionary()
_lock = threading.Lock()


class OpenStack:
    """The services of a cloud. Each request ends within `deadline_seconds`.

    Most are made for a single request, so that nothing is cached here. `functools.cached_property` has a lock
    in Python 3.11, which the threads of a worker would share.
    """

    def __init__(
        self,
        cloud: Cloud | None,
        deadline_seconds: float = CALL_SECONDS,
        region: str = "",
        owner: str = "",
        lag_seconds: float = 0.0,
        *,
        deleting: bool = False,
        max_lag_seconds: float = 0.0,
        listed: Mapping[str, Any] | None = None,
        calls: ProviderCalls | None = None,
    ) -> None:
        """Send no request yet. `owner` is the tree of stacks that the requests are for; `lag_seconds` the age
        of a shared list that may answer an observation, `max_lag_seconds` the age for a service whose lists
        take long; `deleting`: the observed objects are being deleted;
        `listed`: objects that answer observations, in a round of the continuous observation; `calls` are
        the verb's.

        Raises:
            ProviderError: there is no cloud.
        """
        if cloud is None:
            raise ProviderError(NO_CLOUD, "AuthorizationFailure")
        self.cloud, self.deadline_seconds, self.owner = cloud, deadline_seconds, owner
        self.lag, self.listed = ListLag(lag_seconds, deleting, max_lag_seconds), listed
        self.region, self.calls = region or cloud.region, calls or ProviderCalls()

    @property
    def transport(self) -> Transport:
        """The transport of the credential's requests."""
        return _transport(self.cloud.session(), self.region)

    @contextmanager
    def reserved(self, service: str) -> Iterator[None]:
        """Reserve a place and a connection for the calls of a create to a service, during the body, if the
        service has a budget for them.

        Raises:
            AwaitingBudget: the service has too many requests in progress.
            ProviderUnreachable: there is no connection.
        """
        # Scripted transports have no budget.
        reserve = getattr(self.transport, "reserved", None) if service in RESERVED else None
        if reserve is None:
            yield
            return
        with reserve(service, RESERVED[service], self.owner, self.deadline_seconds) as reservation:
            self.calls.reservation = reservation
            try:
                yield
            finally:
                self.calls.reservation = None

    @property
    def _arguments(
        self,
    ) -> tuple[Transport, float, str, ListLag, Mapping[str, Any] | None, ProviderCalls]:
        return self.transport, self.deadline_seconds, self.owner, self.lag, self.listed, self.calls

    def collections(self, service: str) -> Collections:
        """Return the service of this name (`neutron`), for calls that all collections have."""
        return APIS[service](*self._arguments)

    @property
    def compute(self) -> Compute:
        """Nova."""
        return Compute(*self._arguments)

    @property
    def network(self) -> Network:
        """Neutron."""
        return Network(*self._arguments)

    @property
    def block_storage(self) -> BlockStorage:
        """Cinder."""
        return BlockStorage(*self._arguments)

    @property
    def image(self) -> Image:
        """Glance."""
        return Image(*self._arguments)

    @property
    def load_balancing(self) -> LoadBalancing:
        """Octavia."""
        return LoadBalancing(*self._arguments)

    @property
    def identity(self) -> Identity:
        """Keystone."""
        return Identity(*self._arguments)

    @property
    def alarming(self) -> Alarming:
        """Aodh."""
        return Alarming(*self._arguments)

    @property
    def dns(self) -> Dns:
        """Designate."""
        return Dns(*self._arguments)

    @property
    def workflow(self) -> Workflows:
        """Mistral."""
        return Workflows(*self._arguments)

    @property
    def key_manager(self) -> KeyManager:
        """Barbican."""
        return KeyManager(*self._arguments)

    @property
    def object_store(self) -> ObjectStore:
        """Swift."""
        return ObjectStore(*self._arguments)


def _transport(session: Any, region: str) -> Transport:
    """Return the transport of a session in a region. The session of tests is a transport itself."""
    known = _transports.get(session, {}).get(region)
    if known is not None:
        return known
    if isinstance(session, Transport):
        return session
    with _lock:
        regions = _transports.setdefault(session, {})
        if region not in regions:
            regions[region] = SessionTransport(session, region)
        return regions[region]
