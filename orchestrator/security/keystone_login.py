"""Sign-in with a name and a password at Keystone, and sign-out, for callers without their own token."""

from __future__ import annotations

from dataclasses import dataclass, field

from orchestrator.clients.keystone import password_token
from orchestrator.config import Settings
from orchestrator.errors import Misconfigured, Unauthenticated


@dataclass(frozen=True, slots=True)
class PasswordLogin:
    """A user of Keystone and the project of the wanted token."""

    user: str
    password: str = field(repr=False)
    project: str
    user_domain: str = "Default"
    project_domain: str = "Default"


def sign_in(settings: Settings, login: PasswordLogin) -> tuple[str, float]:
    """Return a token and its end, in seconds since the epoch.

    Raises:
        Unauthenticated: Keystone rejects the user, the password or the project.
        Unavailable: Keystone does not respond.
        Misconfigured: no Keystone is configured.
    """
    if settings.keystone_auth_url is None:
        raise Misconfigured("set ORCHESTRATOR_KEYSTONE_AUTH_URL")
    found = password_token.issue(
        settings.keystone_auth_url,
        settings.keystone_ca_file,
        user=login.user,
        password=login.password,
        user_domain=login.user_domain,
        project=login.project,
        project_domain=login.project_domain,
    )
    if found is None:
        raise Unauthenticated
    return found


def sign_out(settings: Settings, token: str) -> None:
    """Revoke a token that `sign_in` has returned.

    Raises:
        Unavailable: Keystone does not respond.
    """
    if settings.keystone_auth_url is not None:
        password_token.revoke(settings.keystone_auth_url, settings.keystone_ca_file, token)
