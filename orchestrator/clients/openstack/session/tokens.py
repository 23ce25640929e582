"""The token of a session: fetched and renewed once for all threads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from orchestrator.clients.deadline import Deadline
from orchestrator.clients.keystone.cloud_session import provider_errors
from orchestrator.clients.openstack.session.single_flight import SingleFlight
from orchestrator.errors import ProviderError, ProviderUnreachable

MIN_LIFE_SECONDS: Final = 120  # of a token that is used: a service may pass it on to another


class Tokens:
    """The token of a session of keystoneauth1."""

    def __init__(self, session: Any) -> None:
        """Send no request yet."""
        self._session = session
        self._flight: SingleFlight[str] = SingleFlight("Keystone")

    def current(self, deadline: Deadline) -> str:
        """Return a valid token.

        Raises:
            ProviderError: Keystone rejects the credentials.
            ProviderBusy, ProviderUnreachable: Keystone does not respond.
        """
        return self._flight.get(self._valid, self._fetch, deadline)

    def renewed(self, refused: str, deadline: Deadline) -> str:
        """Return a token in place of one that a service refused; as `current`. Several threads whose requests
        were refused renew it once.
        """
        return self._flight.get(lambda: self._valid(refused), lambda: self._fetch(refused), deadline)

    @property
    def project_id(self) -> str:
        """The project of the token, "" before it is fetched or without a project."""
        contents = getattr(self._session.auth, "auth_ref", None)
        return str(getattr(contents, "project_id", None) or "")

    @property
    def owner(self) -> tuple[str, str]:
        """The names of the project and of the user of the token, "" before it is fetched."""
        contents = getattr(self._session.auth, "auth_ref", None)
        names = (getattr(contents, name, None) for name in ("project_name", "username"))
        project, user = (str(name or "") for name in names)
        return project, user

    def _valid(self, refused: str = "") -> str | None:
        contents = getattr(self._session.auth, "auth_ref", None)
        if contents is None or contents.will_expire_soon(MIN_LIFE_SECONDS):
            return None
        token = str(contents.auth_token)
        return None if token == refused else token

    def _fetch(self, refused: str = "") -> str:
        with provider_errors(), keystone_failures():
            if refused:
                self._session.invalidate()
            token = self._session.get_token()
        if not token or token == refused:
            raise ProviderError("the credentials are no longer valid", "AuthorizationFailure")
        return str(token)


@contextmanager
def keystone_failures() -> Iterator[None]:
    """Report a connection failure of Keystone: the service itself was sent nothing.

    Raises:
        ProviderUnreachable: there is no connection, or no answer.
    """
    from keystoneauth1 import exceptions  # noqa: PLC0415 - an extra

    try:
        yield
    except (exceptions.ConnectionError, exceptions.RetriableConnectionFailure) as error:
        raise ProviderUnreachable(f"Keystone: {error}") from error
