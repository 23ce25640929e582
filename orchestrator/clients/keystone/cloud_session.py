"""The cloud around a stack, as whoever the stack acts for may call it. Resource types begin here.

A type that calls a service of the cloud asks `ctx.cloud.session()` for a session of keystoneauth1: with it
the service's own SDK finds its endpoint in Keystone's catalog, and gets tokens that are good for as long as
the stack is there. Which right it is that stands behind the session is nothing a type need know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from orchestrator.clients.region_catalog import Endpoint
from orchestrator.errors import OrchestratorError, ProviderBusy, ProviderError, Unavailable

ORCHESTRATION: Final = "orchestration"
NO_CREDENTIALS: Final = (
    "the stack has no credentials for the cloud: update it as a user of the project, with "
    "ORCHESTRATOR_DEFERRED_AUTH_METHOD other than none"
)


class Cloud:
    """The cloud as one stack's user calls it; `region` is meant where none is named."""

    def __init__(self, find: Callable[[], Any | None], region: str, ca_file: str | None = None) -> None:
        """`find` returns a session, None when there is no right to have one; asked when first needed."""
        self._find, self.region, self._ca_file = find, region, ca_file
        self._session: Any = None

    def session(self) -> Any:
        """Return a session of keystoneauth1, scoped to the stack's project.

        Raises:
            ProviderError: the stack has no credentials.
            ProviderBusy: Keystone cannot be asked.
        """
        if self._session is None:
            try:
                self._session = self._find()
            except Unavailable as error:
                raise ProviderBusy(str(error), "ServiceUnavailable") from error
            except ProviderError:
                raise
            except OrchestratorError as error:
                raise ProviderError(str(error), "AuthorizationFailure") from error
        if self._session is None:
            raise ProviderError(NO_CREDENTIALS, "AuthorizationFailure")
        return self._session

    def endpoint(self, service_type: str, region: str, interface: str = "public") -> Endpoint | None:
        """Return where a service is, with a token for it; None when the catalog has none there.

        Raises:
            ProviderError, ProviderBusy: as `session`, or the credentials are not good any more.
        """
        from keystoneauth1.exceptions import EndpointNotFound  # noqa: PLC0415 - an extra

        session = self.session()
        with asking():
            try:
                url = session.get_endpoint(service_type=service_type, region_name=region, interface=interface)
            except EndpointNotFound:  # so says a session with a caller's own token; others say nothing
                return None
            if url is None:
                return None
            return Endpoint(region, url.rstrip("/"), session.get_token() or "", self._ca_file, self._renew)

    def regions(self, service_type: str, interface: str = "public") -> list[str]:
        """Return the regions that have a service."""
        session = self.session()
        with asking():
            told = session.auth.get_access(session).service_catalog
            found = told.get_endpoints(service_type=service_type, interface=interface)
        return sorted({one["region_id"] for many in found.values() for one in many if one["region_id"]})

    def _renew(self) -> str:
        session = self.session()
        with asking():
            session.invalidate()
            return session.get_token() or ""


class Orchestrations(Mapping[str, Endpoint]):
    """The orchestration services that a cloud's catalog has, by region; looked up when asked for."""

    def __init__(self, cloud: Cloud) -> None:
        """Ask nothing yet."""
        self._cloud = cloud

    def __getitem__(self, region: str) -> Endpoint:
        """Return a region's."""
        found = self._cloud.endpoint(ORCHESTRATION, region)
        if found is None:
            raise KeyError(region)
        return found

    def __iter__(self) -> Iterator[str]:
        """Yield the regions that have one."""
        return iter(self._cloud.regions(ORCHESTRATION))

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._cloud.regions(ORCHESTRATION))


@contextmanager
def asking() -> Iterator[None]:
    """Turn keystoneauth's errors into ours.

    Raises:
        ProviderError: the credentials are refused.
        ProviderBusy: Keystone cannot be asked.
    """
    from keystoneauth1.exceptions import ClientException, http  # noqa: PLC0415 - an extra

    try:
        yield
    except (http.Unauthorized, http.Forbidden, http.NotFound) as error:
        message = f"the stack's credentials are not good any more: {error.message}"
        raise ProviderError(message, "AuthorizationFailure") from error
    except ClientException as error:
        raise ProviderBusy(f"Keystone: {error}", "ServiceUnavailable") from error
