"""Verification of EC2 request signatures by Keystone: `POST /v3/ec2tokens`.

Keystone stores the secrets. For a valid signature it returns the contents of a token of the same user and
project. Only authenticated services may ask, so the request is made as the service user.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from orchestrator.clients.keystone.http import UNAVAILABLE, ServiceUser, service_session
from orchestrator.errors import Unavailable
from orchestrator.json_types import JsonMapping


@dataclass(frozen=True, slots=True)
class InvalidSignature:
    """Keystone rejects the access key or the signature; `message` is Keystone's, "" if it sent none."""

    message: str


@dataclass(frozen=True, slots=True)
class Signer:
    """The user whose signature a request carries: the contents of their token, and the token."""

    contents: JsonMapping
    token: str = field(repr=False)


class Ec2Tokens:
    """Client of the `ec2tokens` resource."""

    def __init__(self, user: ServiceUser) -> None:
        """Authenticate as `user` at the first request.

        Raises:
            Misconfigured: keystoneauth1 is not installed.
        """
        self._url = f"{user.auth_url.rstrip('/')}/ec2tokens"
        self._session = service_session(user)

    def ask(self, credentials: JsonMapping) -> Signer | InvalidSignature:
        """Return the signer of a request.

        Raises:
            Unavailable: Keystone does not respond, or rejects the service user.
        """
        from keystoneauth1.exceptions import ClientException  # noqa: PLC0415 - an extra

        try:
            response = self._session.post(self._url, json={"credentials": credentials}, raise_exc=False)
            body = response.json()
            if response.ok:
                return Signer(body["token"], response.headers.get("X-Subject-Token", ""))
        except (ClientException, ValueError, KeyError) as error:
            raise Unavailable(UNAVAILABLE) from error
        if response.status_code not in {400, 401, 403, 404}:
            raise Unavailable(UNAVAILABLE)
        return InvalidSignature(str((body.get("error") or {}).get("message") or ""))
