"""Rights that a user of Keystone's gives us to act for them later: trusts and application credentials.

What is asked of Keystone is told apart by a mark: a trust carries it, an application credential is named by
it. So what came of a request whose answer was lost is found again, and removed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any, Final, Literal

from orchestrator.clients.keystone.ec2_tokens import SECONDS, UNAVAILABLE, ServiceUser
from orchestrator.errors import Forbidden, Misconfigured, Unavailable

Method = Literal["trusts", "application_credential"]
SESSIONS: Final = 256  # whose tokens a process remembers
MISSING: Final = "Could not find"  # how Keystone begins when it knows the path, and not what is named in it
MARK: Final = "orchestrator_mark"  # of a trust; Keystone keeps what it does not know itself


class Refused(Forbidden):
    """Keystone does not let it be done with that token; the message says what and why."""


class NotOffered(Exception):
    """This Keystone has no such rights: nobody can give one there."""


@dataclass(frozen=True, slots=True)
class Delegation:
    """One user's right in one project, given to us."""

    method: Method
    mark: str
    user_id: str  # who gave it
    trust_id: str = ""  # "" while it is not known whether there is one
    secret: str = field(default="", repr=False)  # of an application credential

    def to_json(self) -> dict[str, str]:
        """Return what is kept of it, encrypted."""
        return asdict(self)

    @property
    def name(self) -> str:
        """What an application credential is called; users see it."""
        return f"orchestrator-{self.mark}"


@dataclass(frozen=True, slots=True)
class Giver:
    """Who gives a right, by the token that they showed."""

    user_id: str
    project_id: str
    token: str = field(repr=False)
    roles: Sequence[Mapping[str, str]] = ()  # each an id or a name


class Delegations:
    """Asks one Keystone for rights, and gives them back. Every call has a deadline.

    Every method may raise Unavailable: Keystone does not answer, or does not know us; what was asked for may
    be done all the same.
    """

    def __init__(self, user: ServiceUser) -> None:
        """Take where Keystone is, and as whom we are there.

        Raises:
            Misconfigured: the library is not installed.
        """
        self._user, self._session = user, session_of(user)
        self._base = user.auth_url.rstrip("/")

    def give(self, asked: Delegation, giver: Giver, *, redelegate: bool = False) -> Delegation:
        """Have the right made that is asked for; return it complete.

        Raises:
            Refused: the giver's token may not, or they have not these roles.
            NotOffered: nobody may, there.
        """
        if asked.method == "trusts":
            return self._give_trust(asked, giver, redelegate=redelegate)
        body: dict[str, Any] = {"name": asked.name, "secret": asked.secret, "unrestricted": True}
        body["description"] = "For what a stack does later; removed with it."
        if giver.roles:
            body["roles"] = list(giver.roles)
        path = f"/users/{giver.user_id}/application_credentials"
        self._ask("POST", path, giver.token, {"application_credential": body})
        return asked

    def _give_trust(self, asked: Delegation, giver: Giver, *, redelegate: bool) -> Delegation:
        with answers():
            trustee = self._session.get_user_id()
        body: dict[str, Any] = {
            "trustor_user_id": giver.user_id,
            "trustee_user_id": trustee,
            "project_id": giver.project_id,
            "impersonation": True,
            "allow_redelegation": redelegate,  # as often as Keystone allows: a trust's own trusts less often
            "roles": list(giver.roles),
            MARK: asked.mark,
        }
        told = self._ask("POST", "/OS-TRUST/trusts", giver.token, {"trust": body})
        return Delegation("trusts", asked.mark, asked.user_id, str(told["trust"]["id"]))

    def remove(self, given: Delegation) -> None:
        """Give a right back; one that is gone, or was never made, is fine.

        Raises:
            Refused: it is there, and its giver is not let do this just now: disabled, or without the roles.
        """
        if given.method == "trusts":
            for trust_id in [given.trust_id] if given.trust_id else self._marked(given.mark):
                self._remove_trust(Delegation("trusts", given.mark, given.user_id, trust_id))
            return
        session = session_of(self._user, given)
        token = self._token_of(session)
        if token is None:
            return  # nobody has that name and secret
        path = f"/users/{given.user_id}/application_credentials"
        listed = self._ask("GET", f"{path}?name={given.name}", token) or {}
        for one in listed.get("application_credentials", ()):
            self._ask("DELETE", f"{path}/{one['id']}", token)

    def _remove_trust(self, given: Delegation) -> None:
        """Remove a trust as its trustor, whom it makes us: a trustee may not."""
        token, path = self._token_of(session_of(self._user, given)), f"/OS-TRUST/trusts/{given.trust_id}"
        if token is not None:
            self._ask("DELETE", path, token)
        elif self._ask("GET", path, None) is not None:
            raise Refused("The trust cannot be used, and so not be removed: its user may do nothing there.")

    def _marked(self, mark: str) -> list[str]:
        """Return the trusts that carry a mark."""
        with answers():
            trustee = self._session.get_user_id()
        listed = self._ask("GET", f"/OS-TRUST/trusts?trustee_user_id={trustee}", None) or {}
        return [str(one["id"]) for one in listed.get("trusts", ()) if one.get(MARK) == mark]

    def _token_of(self, session: Any) -> str | None:
        """Return a new token that a right gives, None when it gives none."""
        from keystoneauth1.exceptions import http  # noqa: PLC0415 - an extra

        with answers():
            try:
                session.invalidate()
                token: str | None = session.get_token()
                return token
            except (http.Unauthorized, http.Forbidden, http.NotFound):
                return None

    def _ask(self, method: str, path: str, token: str | None, body: Any = None) -> Any:
        """Return what Keystone answers, None where there is nothing; without a token we ask as ourselves."""
        with answers():
            answer = self._session.request(
                f"{self._base}{path}",
                method,
                json=body,
                headers={} if token is None else {"X-Auth-Token": token},
                authenticated=token is None,
                raise_exc=False,
            )
            if answer.status_code == 404 and method != "POST":
                return None
            if answer.ok:
                return answer.json() if answer.content else {}
            if answer.status_code >= 500:
                raise Unavailable(UNAVAILABLE)
            if answer.status_code == 404 and not words(answer).startswith(MISSING):
                raise NotOffered
            raise Refused(words(answer))


@lru_cache(maxsize=SESSIONS)
def session_of(user: ServiceUser, given: Delegation | None = None) -> Any:
    """Return a session of keystoneauth1: our own, or as whoever gave us a right. It remembers its token, and
    gets another when that ends.

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
    if given is not None and given.method == "application_credential":
        auth: Any = v3.ApplicationCredential(
            user.auth_url,
            application_credential_name=given.name,
            application_credential_secret=given.secret,
            user_id=given.user_id,
        )
    else:
        scope: dict[str, Any] = (
            {"trust_id": given.trust_id}
            if given is not None
            else {"project_name": user.project_name, "project_domain_name": user.project_domain_name}
        )
        auth = v3.Password(
            user.auth_url,
            username=user.username,
            password=user.password,
            user_domain_name=user.user_domain_name,
            **scope,
        )
    return Session(auth, verify=_verified(user), timeout=SECONDS)


def session_with(user: ServiceUser, token: str) -> Any:
    """Return a session with a caller's own token, for as long as that is good.

    Raises:
        Unavailable: Keystone does not answer, or does not know the token any more.
    """
    from keystoneauth1 import access  # noqa: PLC0415 - an extra
    from keystoneauth1.identity.access import AccessInfoPlugin  # noqa: PLC0415
    from keystoneauth1.session import Session  # noqa: PLC0415

    session = Session(verify=_verified(user), timeout=SECONDS)
    with answers():
        answer = session.get(
            f"{user.auth_url.rstrip('/')}/auth/tokens",
            headers={"X-Auth-Token": token, "X-Subject-Token": token},
            authenticated=False,
        )
        told = access.create(body=answer.json(), auth_token=token)
    return Session(AccessInfoPlugin(told, user.auth_url), verify=_verified(user), timeout=SECONDS)


def _verified(user: ServiceUser) -> str | bool:
    return str(user.cafile) if user.cafile else True


@contextmanager
def answers() -> Iterator[None]:
    """Turn what goes wrong on the way into Unavailable, unless Keystone's answer is asked for."""
    from keystoneauth1.exceptions import ClientException, http  # noqa: PLC0415 - an extra

    try:
        yield
    except (ClientException, ValueError, KeyError) as error:
        if isinstance(error, http.Forbidden):
            raise Refused(str(error)) from error
        raise Unavailable(UNAVAILABLE) from error


def words(answer: Any) -> str:
    """Return Keystone's words of a refusal."""
    try:
        return str(answer.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return f"it answered {answer.status_code}"
