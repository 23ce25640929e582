"""HTTP requests to Keystone: sessions with a deadline, and the errors that its clients share."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from orchestrator.errors import Forbidden, Misconfigured, Unavailable

UNAVAILABLE: Final = "The Keystone service is temporarily unavailable."
EXCHANGE_SECONDS: Final = 15.0  # wall clock, for one request and its complete response


class Refused(Forbidden):
    """Keystone refused the request; the message is Keystone's own. `status` is None without a response."""

    def __init__(self, message: str, status: int | None = None) -> None:
        """Keep the HTTP status."""
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class ServiceUser:
    """Keystone's URL, and the service user that this project authenticates as."""

    auth_url: str
    username: str
    password: str = field(repr=False)
    project_name: str
    user_domain_name: str
    project_domain_name: str
    cafile: Path | None = None


class KeystoneApi:
    """Keystone's v3 API. Every request has a deadline.

    Any request may raise Unavailable: Keystone does not respond, or rejects the session's credentials. It may
    still have carried out the request.
    """

    def __init__(self, auth_url: str, session: Any) -> None:
        """Use a session of keystoneauth1."""
        self.session = session
        self._base = auth_url.rstrip("/")

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str | None = None,
        absent: Collection[int] = (404,),
    ) -> Any:
        """Return the decoded response, None for a status in `absent`; authenticate with `token` if given.

        Raises:
            Refused: any other status below 500 that reports a failure.
        """
        with translated_errors():
            response = self.session.request(
                f"{self._base}{path}",
                method,
                json=body,
                headers={} if token is None else {"X-Auth-Token": token},
                authenticated=token is None,
                raise_exc=False,
            )
            if response.status_code in absent:
                return None
            if response.ok:
                return response.json() if response.content else {}
            if response.status_code >= 500:
                raise Unavailable(UNAVAILABLE)
            raise Refused(error_message(response), response.status_code)


def service_session(user: ServiceUser, trust_id: str | None = None) -> Any:
    """Return a session of the service user, in its own project or, by a trust, as the trustor.

    Raises:
        Misconfigured: keystoneauth1 is not installed.
    """
    scope = (
        {"project_name": user.project_name, "project_domain_name": user.project_domain_name}
        if trust_id is None
        else {"trust_id": trust_id}
    )
    auth = identity_plugins().Password(
        user.auth_url,
        username=user.username,
        password=user.password,
        user_domain_name=user.user_domain_name,
        **scope,
    )
    return new_session(auth, user.cafile)


def new_session(auth: Any, cafile: Path | None) -> Any:
    """Return a session that renews its token; without `auth` its requests carry no token."""
    from keystoneauth1.session import Session  # noqa: PLC0415 - an extra

    from orchestrator.clients.keystone.deadline_adapter import with_deadline  # noqa: PLC0415 - as above

    return with_deadline(Session(auth, verify=str(cafile) if cafile else True), EXCHANGE_SECONDS)


def identity_plugins() -> Any:
    """Return keystoneauth1's module of v3 authentication plugins.

    Raises:
        Misconfigured: keystoneauth1 is not installed.
    """
    try:
        from keystoneauth1.identity import v3  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise Misconfigured(
            "keystoneauth1 is not installed: pip install 'stack-orchestrator[keystone]'"
        ) from error
    return v3


@contextmanager
def translated_errors() -> Iterator[None]:
    """Translate keystoneauth1's errors and malformed responses.

    Raises:
        Refused: Keystone forbids the session's user to authenticate.
        Unavailable: every other failure.
    """
    from keystoneauth1.exceptions import ClientException, http  # noqa: PLC0415 - an extra

    try:
        yield
    except (ClientException, ValueError, KeyError) as error:
        if isinstance(error, http.Forbidden):
            raise Refused(str(error)) from error
        raise Unavailable(UNAVAILABLE) from error


def error_message(response: Any) -> str:
    """Return the message of an error response."""
    try:
        return str(response.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return f"it answered {response.status_code}"
