"""Tokens that Keystone issues for a name and a password."""

from __future__ import annotations

from pathlib import Path

from orchestrator.clients.keystone.http import identity_plugins, new_session, translated_errors


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
