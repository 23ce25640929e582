"""The cloud as a stack's user may call it. Resource types start here.

A resource type that calls a cloud service gets a session of keystoneauth1 from `ctx.cloud.session()`. With it
the service's SDK finds its endpoint in Keystone's catalog, and renews its token for the life of the stack.
Types need not know which kind of delegation the session uses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from orchestrator.clients.region_catalog import Endpoint
from orchestrator.errors import (
    OrchestratorError,
    ProviderBusy,
    ProviderError,
    ProviderUnreachable,
    Unavailable,
)

ORCHESTRATION: Final = "orchestration"
NO_CREDENTIALS: Final = (
    "the stack has no credentials for the cloud: update it as a user of the project, with "
    "ORCHESTRATOR_DEFERRED_AUTH_METHOD other than none"
)


class Cloud:
    """The cloud, called as one stack's user; `region` is the default region."""

    def __init__(
        self, open_session: Callable[[], Any | None], region: str, ca_file: str | None = None
    ) -> None:
        """`open_session` runs at first use; it returns None if the stack has no credentials."""
        self._open_session, self.region, self._ca_file = open_session, region, ca_file
        self._session: Any = None

    def session(self) -> Any:
        """Return a session of keystoneauth1, scoped to the stack's project.

        Raises:
            ProviderError: the stack has no credentials.
            ProviderBusy: Keystone does not respond.
        """
        if self._session is None:
            try:
                self._session = self._open_session()
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
        """Return a service's endpoint with a token for it; None if the catalog has no such service there.

        Raises:
            ProviderError, ProviderBusy: as `session`; ProviderError also if the credentials have become
            invalid.
        """
        from keystoneauth1.exceptions import EndpointNotFound  # noqa: PLC0415 - an extra

        session = self.session()
        with provider_errors():
            try:
                url = session.get_endpoint(service_type=service_type, region_name=region, interface=interface)
            except EndpointNotFound:  # raised for a caller's own token; other sessions return None
                return None
            if url is None:
                return None
            return Endpoint(region, url.rstrip("/"), session.get_token() or "", self._ca_file, self._renew)

    def regions(self, service_type: str, interface: str = "public") -> list[str]:
        """Return the regions that offer a service."""
        session = self.session()
        with provider_errors():
            catalog = session.auth.get_access(session).service_catalog
            services = catalog.get_endpoints(service_type=service_type, interface=interface)
        regions = {endpoint["region_id"] for endpoints in services.values() for endpoint in endpoints}
        return sorted(region for region in regions if region)

    def _renew(self) -> str:
        session = self.session()
        with provider_errors():
            session.invalidate()
            return session.get_token() or ""


class Orchestrations(Mapping[str, Endpoint]):
    """The orchestration endpoints in a cloud's catalog, by region; read at each access."""

    def __init__(self, cloud: Cloud) -> None:
        """Send no request yet."""
        self._cloud = cloud

    def __getitem__(self, region: str) -> Endpoint:
        """Return the endpoint of a region."""
        endpoint = self._cloud.endpoint(ORCHESTRATION, region)
        if endpoint is None:
            raise KeyError(region)
        return endpoint

    def __iter__(self) -> Iterator[str]:
        """Yield the regions with an endpoint."""
        return iter(self._cloud.regions(ORCHESTRATION))

    def __len__(self) -> int:
        """Return the number of such regions."""
        return len(self._cloud.regions(ORCHESTRATION))


@contextmanager
def provider_errors() -> Iterator[None]:
    """Translate keystoneauth1's errors to provider errors.

    Raises:
        ProviderError: Keystone rejects the credentials.
        ProviderBusy: Keystone does not respond.
    """
    from keystoneauth1.exceptions import ClientException, http  # noqa: PLC0415 - an extra

    try:
        yield
    except (http.Unauthorized, http.Forbidden, http.NotFound) as error:
        message = f"the stack's credentials are no longer valid: {error.message}"
        raise ProviderError(message, "AuthorizationFailure") from error
    except http.HttpError as error:
        raise ProviderBusy(f"Keystone: {error}", "ServiceUnavailable") from error
    except ClientException as error:
        raise ProviderUnreachable(f"Keystone: {error}", "ServiceUnavailable") from error
