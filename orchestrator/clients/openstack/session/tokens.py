"""The token of a session: fetched and renewed once for all threads."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from orchestrator.clients.deadline import Deadline
from orchestrator.clients.keystone.cloud_session import provider_errors
from orchestrator.clients.openstack.errors import ReportedBy
from orchestrator.clients.openstack.session.single_flight import SingleFlight
from orchestrator.errors import ProviderError, ProviderUnreachable

MIN_LIFE_SECONDS: Final = 120  # of a token that is used: a service may pass it on to another
JUDGED_SECONDS: Final = 1.0  # during which the age of a token is not judged again


class Tokens:
    """The token of a session of keystoneauth1."""

    def __init__(self, session: Any) -> None:
        """Send no request yet."""
        self._session = session
        self._flight: SingleFlight[str] = SingleFlight("Keystone")
        self._judged: tuple[object, float] = (None, 0.0)  # contents that live long enough, and until when

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
    def contents(self) -> Any:
        """Keystone's description of the token, with the catalog; None before it is fetched."""
        return getattr(self._session.auth, "auth_ref", None)

    @property
    def project_id(self) -> str:
        """The project of the token, "" before it is fetched or without a project."""
        return str(getattr(self.contents, "project_id", None) or "")

    @property
    def owner(self) -> tuple[str, str]:
        """The names of the project and of the user of the token, "" before it is fetched."""
        contents = self.contents
        names = (getattr(contents, name, None) for name in ("project_name", "username"))
        project, user = (str(name or "") for name in names)
        return project, user

    def _valid(self, refused: str = "") -> str | None:
        contents = self.contents
        if contents is None or self._expires_soon(contents):
            return None
        token = str(contents.auth_token)
        return None if token == refused else token

    def _expires_soon(self, contents: Any) -> bool:
        """Return whether a token is too old to be used; keystoneauth1 reads the date anew at each call."""
        now = time.monotonic()
        judged, until = self._judged
        if judged is contents and now < until:
            return False
        if contents.will_expire_soon(MIN_LIFE_SECONDS):
            return True
        self._judged = contents, now + JUDGED_SECONDS
        return False

    def _fetch(self, refused: str = "") -> str:
        with ReportedBy("keystone"), provider_errors(), keystone_failures():
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
