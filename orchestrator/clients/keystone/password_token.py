"""Tokens that Keystone issues for a name and a password."""

from __future__ import annotations

from pathlib import Path

from orchestrator.clients.keystone.http import UNAVAILABLE, identity_plugins, new_session, translated_errors
from orchestrator.errors import Unavailable


def issue(
    auth_url: str,
    cafile: Path | None,
    *,
    user: str,
    password: str,
    user_domain: str,
    project: str,
    project_domain: str,
) -> tuple[str, float] | None:
    """Return a token for a project and its end, in seconds since the epoch; None if Keystone rejects them.

    Raises:
        Unavailable: Keystone does not respond.
    """
    auth = identity_plugins().Password(
        auth_url,
        username=user,
        password=password,
        user_domain_name=user_domain,
        project_name=project,
        project_domain_name=project_domain,
        include_catalog=False,
    )
    from keystoneauth1.exceptions import http  # noqa: PLC0415 - an extra

    with translated_errors():
        try:
            access = auth.get_access(new_session(auth, cafile))
        except (http.Unauthorized, http.Forbidden, http.NotFound):
            return None
        return str(access.auth_token), access.expires.timestamp()


def revoke(auth_url: str, cafile: Path | None, token: str) -> None:
    """Revoke a token with itself. A token that Keystone does not know is revoked already.

    Raises:
        Unavailable: Keystone does not respond, or fails.
    """
    with translated_errors():
        response = new_session(None, cafile).request(
            f"{auth_url.rstrip('/')}/auth/tokens",
            "DELETE",
            headers={"X-Auth-Token": token, "X-Subject-Token": token},
            authenticated=False,
            raise_exc=False,
        )
    if response.status_code >= 500:
        raise Unavailable(UNAVAILABLE)
