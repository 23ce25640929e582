"""The endpoints of services: openstacksdk finds them in the catalog and reads the services' versions.

The versions of an endpoint are the same for every credential, so that they are read once in a process.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any, Final

from orchestrator.clients.deadline import Deadline
from orchestrator.clients.openstack.errors import discovery_failures
from orchestrator.clients.openstack.sdk import sdk_connection
from orchestrator.clients.openstack.session.single_flight import SingleFlight
from orchestrator.errors import ProviderError, ProviderUnreachable

KNOWN_SECONDS: Final = 900.0  # after which an upgrade of a service is noticed
UNKNOWN_SECONDS: Final = 5.0  # of an endpoint whose versions could not be read
WITH_MICROVERSIONS: Final = frozenset({"compute", "block-storage"})
# openstacksdk appends `/v2.0` to the URL in the catalog, where Octavia has no description of its versions.
UNDESCRIBED: Final = frozenset({"load-balancer"})
MAX_KNOWN: Final = 1_000  # URLs in the catalog may contain the id of a project


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The URL of a service's major version, and its microversions ("" without microversions)."""

    url: str
    lowest: str = ""
    highest: str = ""
    until: float = 0.0  # time of `time.monotonic` at which it is read again


_known: dict[tuple[str, str], Endpoint] = {}
_flights: dict[tuple[str, str], SingleFlight[Endpoint]] = {}


def find_endpoint(session: Any, region: str, service: str, service_type: str, deadline: Deadline) -> Endpoint:
    """Return the endpoint of a service; the session has a token.

    Raises:
        ProviderError: the catalog has no such service in the region.
        ProviderUnreachable: the service does not describe its versions.
        Misconfigured: openstacksdk is not installed.
    """
    key = (service_type, _catalog_url(session, region, service, service_type))
    flight = _flights.setdefault(key, SingleFlight(service))
    return flight.get(lambda: _unexpired(key), lambda: _discover(session, region, service, key), deadline)


def _catalog_url(session: Any, region: str, service: str, service_type: str) -> str:
    with discovery_failures(service):
        catalog = session.auth.get_access(session).service_catalog
        data = catalog.endpoint_data_for(service_type=service_type, region_name=region or None)
    if data is None:
        where = f" in region {region}" if region else ""
        raise ProviderError(f"the catalog has no service {service}{where}", "EndpointNotFound")
    return str(data.url)


def _unexpired(key: tuple[str, str]) -> Endpoint | None:
    endpoint = _known.get(key)
    return endpoint if endpoint is not None and endpoint.until > time.monotonic() else None


def _discover(session: Any, region: str, service: str, key: tuple[str, str]) -> Endpoint:
    connection_class = sdk_connection()
    with discovery_failures(service), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of versions that openstacksdk does not know
        connection = connection_class(session=session, region_name=region or None)
        proxy = getattr(connection, key[0].replace("-", "_"))
        data = None if key[0] in UNDESCRIBED else proxy.get_endpoint_data()
    if key[0] in UNDESCRIBED:
        url, lowest, highest = proxy.endpoint_override, "", ""
    elif data is None:
        raise ProviderUnreachable(f"{service} does not describe its versions")
    else:
        url, lowest, highest = data.url, _text(data.min_microversion), _text(data.max_microversion)
    unread = not highest and key[0] in WITH_MICROVERSIONS  # only the catalog was read
    until = time.monotonic() + (UNKNOWN_SECONDS if unread else KNOWN_SECONDS)
    endpoint = Endpoint(str(url).rstrip("/"), lowest, highest, until)
    if len(_known) >= MAX_KNOWN:
        _known.clear()
        _flights.clear()
    _known[key] = endpoint
    return endpoint


def _text(version: Any) -> str:
    return ".".join(str(part) for part in version or ())
