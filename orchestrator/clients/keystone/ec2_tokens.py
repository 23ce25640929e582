"""Whose the signature of a request is, as Keystone knows it: `POST /v3/ec2tokens`.

Keystone has the secrets, and answers with what a token of the same user and project would say. It is asked as
the service's own user: it tells strangers nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from orchestrator.errors import Misconfigured, Unavailable

UNAVAILABLE: Final = "The Keystone service is temporarily unavailable."
SECONDS: Final = 10.0  # for one answer


@dataclass(frozen=True, slots=True)
class ServiceUser:
    """Where Keystone is, and as whom it is asked."""

    auth_url: str
    username: str
    password: str
    project_name: str
    user_domain_name: str
    project_domain_name: str
    cafile: Path | None = None


@dataclass(frozen=True, slots=True)
class Unknown:
    """Keystone does not take the signature for one; its words, if it says any."""

    why: str


@dataclass(frozen=True, slots=True)
class Signer:
    """Who signed: what a token of theirs says, and that token."""

    told: Mapping[str, Any]
    token: str = field(repr=False)


class Ec2Tokens:
    """Asks one Keystone."""

    def __init__(self, user: ServiceUser) -> None:
        """Take where and as whom; nothing is asked yet.

        Raises:
            Misconfigured: the library is not installed.
        """
        try:
            from keystoneauth1.identity import v3  # noqa: PLC0415 - an extra
            from keystoneauth1.session import Session  # noqa: PLC0415
        except ImportError as error:
            raise Misconfigured(
                "keystoneauth1 is not installed: pip install 'stack-orchestrator[keystone]'"
            ) from error
        self._url = f"{user.auth_url.rstrip('/')}/ec2tokens"
        self._session = Session(
            v3.Password(
                auth_url=user.auth_url,
                username=user.username,
                password=user.password,
                project_name=user.project_name,
                user_domain_name=user.user_domain_name,
                project_domain_name=user.project_domain_name,
            ),
            verify=str(user.cafile) if user.cafile else True,
            timeout=SECONDS,
        )

    def ask(self, credentials: Mapping[str, Any]) -> Signer | Unknown:
        """Return who signed.

        Raises:
            Unavailable: Keystone does not answer, or does not know us.
        """
        from keystoneauth1.exceptions import ClientException  # noqa: PLC0415 - an extra

        try:
            answer = self._session.post(self._url, json={"credentials": credentials}, raise_exc=False)
            said = answer.json()
            if answer.ok:
                return Signer(said["token"], answer.headers.get("X-Subject-Token", ""))
        except (ClientException, ValueError, KeyError) as error:
            raise Unavailable(UNAVAILABLE) from error
        if answer.status_code not in {400, 401, 403, 404}:
            raise Unavailable(UNAVAILABLE)
        return Unknown(str((said.get("error") or {}).get("message") or ""))
