"""Rights that a Keystone user delegates to the service, to act for them later: trusts, application
credentials.

Each delegation carries a unique mark: an attribute of a trust, the name of an application credential. By its
mark a delegation is found and removed even if the response that created it was lost.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any, Final, Literal

import orjson

from orchestrator.clients.keystone.http import (
    KeystoneApi,
    Refused,
    ServiceUser,
    identity_plugins,
    new_session,
    service_session,
    translated_errors,
)
from orchestrator.json_types import JsonMapping, JsonObject

Method = Literal["trusts", "application_credential"]
MAX_SESSIONS: Final = 256  # sessions, each with its token, that a process caches
NOT_FOUND_PREFIX: Final = (
    "Could not find"  # Keystone's 404 for an unknown object; that for an unknown path differs
)
MARK: Final = "orchestrator_mark"  # attribute of a trust; Keystone stores attributes that it does not know


class DelegationUnsupported(Exception):
    """This Keystone offers no delegations of the requested method."""


@dataclass(frozen=True, slots=True)
class Delegation:
    """The right to act for a user in a project."""

    method: Method
    mark: str
    user_id: str  # of the delegating user
    trust_id: str = ""  # "" while it is unknown whether the trust exists
    secret: str = field(default="", repr=False)  # of an application credential

    def to_json(self) -> dict[str, str]:
        """Return the fields to store; the caller encrypts them."""
        return asdict(self)

    @property
    def name(self) -> str:
        """Name of the application credential; its user sees it."""
        return f"orchestrator-{self.mark}"


@dataclass(frozen=True, slots=True)
class Trustor:
    """The delegating user, with the token of their request."""

    user_id: str
    project_id: str
    token: str = field(repr=False)
    roles: Sequence[Mapping[str, str]] = ()  # to be delegated; each an id or a name


class Delegations:
    """Creates and removes delegations at Keystone.

    Every method may raise Unavailable; Keystone may still have carried out the request.
    """

    def __init__(self, user: ServiceUser) -> None:
        """Authenticate as `user` at the first request.

        Raises:
            Misconfigured: keystoneauth1 is not installed.
        """
        self._user, self._api = user, KeystoneApi(user.auth_url, keystone_session(user))

    def create(self, requested: Delegation, trustor: Trustor, *, redelegate: bool = False) -> Delegation:
        """Create a delegation; return it with the id of its trust.

        Raises:
            Refused: the trustor's token must not delegate, or the trustor lacks a role.
            DelegationUnsupported: this Keystone offers none.
        """
        if requested.method == "trusts":
            return self._create_trust(requested, trustor, redelegate=redelegate)
        body: JsonObject = {"name": requested.name, "secret": requested.secret, "unrestricted": True}
        body["description"] = "Lets a stack act for you later; removed with the stack."
        if trustor.roles:
            body["roles"] = list(trustor.roles)
        path = f"/users/{trustor.user_id}/application_credentials"
        self._post(path, {"application_credential": body}, trustor)
        return requested

    def _create_trust(self, requested: Delegation, trustor: Trustor, *, redelegate: bool) -> Delegation:
        body: JsonObject = {
            "trustor_user_id": trustor.user_id,
            "trustee_user_id": self._service_user_id(),
            "project_id": trustor.project_id,
            "impersonation": True,
            "allow_redelegation": redelegate,  # without a count: it has to shrink with each redelegation
            "roles": list(trustor.roles),
            MARK: requested.mark,
        }
        trust = self._post("/OS-TRUST/trusts", {"trust": body}, trustor)["trust"]
        return Delegation("trusts", requested.mark, requested.user_id, str(trust["id"]))

    def _post(self, path: str, body: JsonMapping, trustor: Trustor) -> Any:
        try:
            return self._api.request("POST", path, body, token=trustor.token, absent=())
        except Refused as error:
            if error.status == 404 and not str(error).startswith(NOT_FOUND_PREFIX):
                raise DelegationUnsupported from error
            raise

    def is_usable(self, delegation: Delegation) -> bool:
        """Return whether Keystone issues a token for a delegation."""
        return _new_token(keystone_session(self._user, delegation)) is not None

    def remove(self, delegation: Delegation) -> None:
        """Remove a delegation; do nothing if it does not exist.

        Raises:
            Refused: it exists, and its user cannot remove it now: the user is disabled or lacks the roles.
        """
        if delegation.method == "trusts":
            trust_ids = [delegation.trust_id] if delegation.trust_id else self._trusts_marked(delegation.mark)
            for trust_id in trust_ids:
                self._remove_trust(Delegation("trusts", delegation.mark, delegation.user_id, trust_id))
            return
        token = _new_token(keystone_session(self._user, delegation))
        if token is None:
            return  # no application credential has that name and secret
        path = f"/users/{delegation.user_id}/application_credentials"
        listed = self._api.request("GET", f"{path}?name={delegation.name}", token=token) or {}
        for credential in listed.get("application_credentials", ()):
            self._api.request("DELETE", f"{path}/{credential['id']}", token=token)

    def _remove_trust(self, delegation: Delegation) -> None:
        """Remove a trust with a token that it grants: only the trustor may remove it."""
        token = _new_token(keystone_session(self._user, delegation))
        path = f"/OS-TRUST/trusts/{delegation.trust_id}"
        if token is not None:
            self._api.request("DELETE", path, token=token)
        elif self._api.request("GET", path) is not None:
            raise Refused("The trust cannot be used, so it cannot be removed: its user has no rights.")

    def _trusts_marked(self, mark: str) -> list[str]:
        path = f"/OS-TRUST/trusts?trustee_user_id={self._service_user_id()}"
        listed = self._api.request("GET", path) or {}
        return [str(trust["id"]) for trust in listed.get("trusts", ()) if trust.get(MARK) == mark]

    def _service_user_id(self) -> Any:
        with translated_errors():
            return self._api.session.get_user_id()


def _new_token(session: Any) -> str | None:
    """Return a new token of a delegation, None if the delegation is not valid."""
    from keystoneauth1.exceptions import http  # noqa: PLC0415 - an extra

    with translated_errors():
        try:
            session.invalidate()
            token: str | None = session.get_token()
            return token
        except (http.Unauthorized, http.Forbidden, http.NotFound):
            return None


# Sessions of callers by token and its contents, the least recently used first.
_token_sessions: Final[dict[tuple[ServiceUser, str, bytes], Any]] = {}
_sessions_lock: Final = threading.Lock()


@lru_cache(maxsize=MAX_SESSIONS)
def keystone_session(user: ServiceUser, delegation: Delegation | None = None) -> Any:
    """Return a session of keystoneauth1 as the service user, or as the user of a delegation.

    Raises:
        Misconfigured: keystoneauth1 is not installed.
    """
    if delegation is None or delegation.method == "trusts":
        return service_session(user, None if delegation is None else delegation.trust_id)
    auth = identity_plugins().ApplicationCredential(
        user.auth_url,
        application_credential_name=delegation.name,
        application_credential_secret=delegation.secret,
        user_id=delegation.user_id,
    )
    return new_session(auth, user.cafile)


def token_session(user: ServiceUser, token: str, contents: JsonMapping | None = None) -> Any:
    """Return a session with a caller's own token; it ends when the token expires.

    `contents` belong to the token, if Keystone has validated it already: then requests with this token
    share a session, and the endpoints are discovered once.

    Raises:
        Unavailable: Keystone does not respond, or the token is no longer valid.
    """
    if contents is None:
        return _token_session(user, token, _validated(user, token))
    key = (user, token, hashlib.sha256(orjson.dumps(contents)).digest())
    with _sessions_lock:
        session = _token_sessions.pop(key, None)
        if session is None or session.auth.auth_ref.will_expire_soon(0):
            session = _token_session(user, token, {"token": contents})
        _token_sessions[key] = session
        while len(_token_sessions) > MAX_SESSIONS:
            del _token_sessions[next(iter(_token_sessions))]
        return session


def _token_session(user: ServiceUser, token: str, body: JsonMapping) -> Any:
    """Return a session with a token, from Keystone's answer about it."""
    from keystoneauth1 import access  # noqa: PLC0415 - an extra
    from keystoneauth1.identity.access import AccessInfoPlugin  # noqa: PLC0415

    contents = access.create(body=dict(body), auth_token=token)
    return new_session(AccessInfoPlugin(contents, user.auth_url), user.cafile)


def _validated(user: ServiceUser, token: str) -> JsonMapping:
    """Return Keystone's answer about a token."""
    with translated_errors():
        response = new_session(None, user.cafile).get(
            f"{user.auth_url.rstrip('/')}/auth/tokens",
            headers={"X-Auth-Token": token, "X-Subject-Token": token},
            authenticated=False,
        )
        body: JsonMapping = response.json()
    return body
