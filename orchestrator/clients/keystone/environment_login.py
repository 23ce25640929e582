"""A Keystone token for the credentials in the variables of OpenStack's clients (`OS_AUTH_URL` and others)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from orchestrator.clients.keystone.deadline_adapter import with_deadline

PREFIX: Final = "OS_"
LOGIN_SECONDS: Final = 20.0
# The names of these variables differ from keystoneauth1's options.
SYNONYMS: Final = {"project_name": "OS_TENANT_NAME", "project_id": "OS_TENANT_ID"}


class KeystoneLogin(NamedTuple):
    """A token, and the id of the project for which it is valid."""

    token: str
    project_id: str


def log_in(environ: Mapping[str, str] = os.environ) -> KeystoneLogin:
    """Return a new token. `OS_AUTH_TYPE` selects the method, by default a password.

    Raises:
        LookupError: the variables are not sufficient, or Keystone refuses them or does not answer.
        ModuleNotFoundError: keystoneauth1 is not installed.
    """
    from keystoneauth1 import exceptions, loading  # noqa: PLC0415 - an extra
    from keystoneauth1.session import Session  # noqa: PLC0415

    method = environ.get("OS_AUTH_TYPE") or "password"
    verify = environ.get("OS_CACERT") or environ.get("OS_INSECURE", "").lower() not in {"1", "true", "yes"}
    try:
        loader: Any = loading.get_plugin_loader(method)
        options = {option.dest: _value(option.dest, environ) for option in loader.get_options()}
        auth = loader.load_from_options(**{name: value for name, value in options.items() if value})
        session = with_deadline(Session(auth=auth, verify=verify), LOGIN_SECONDS)
        token, project_id = auth.get_token(session), auth.get_project_id(session)
    except exceptions.NoMatchingPlugin as error:
        raise LookupError(f"OS_AUTH_TYPE: unknown method {method}") from error
    except Exception as error:  # for missing options, keystoneauth1 raises errors of this class
        raise LookupError(str(error)) from error
    if not project_id:
        raise LookupError("the token is not valid for a project; set OS_PROJECT_NAME")
    return KeystoneLogin(token, project_id)


def _value(option: str, environ: Mapping[str, str]) -> str | None:
    return environ.get(f"{PREFIX}{option.upper()}") or environ.get(SYNONYMS.get(option, ""))
