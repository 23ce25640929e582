"""Callers with a token of Keystone's (`auth = keystone`): keystonemiddleware says whose it is.

The library's middleware is asked once a request, with the few things of it that a token is judged by, and
stands in front of nothing: so that what needs no token is not looked at, that no header of a caller's can
pass for what the library found out, and that answers stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from orchestrator.clients.keystone.http import UNAVAILABLE, ServiceUser
from orchestrator.clients.keystone.stack_domain import DomainAdmin
from orchestrator.config import Settings
from orchestrator.errors import Misconfigured, Unauthenticated, Unavailable
from orchestrator.security.caller import Caller, Login
from orchestrator.security.resource_credentials import STACK_USER
from orchestrator.security.ttl_cache import Remembered

SERVICE_TYPE: Final = "orchestration"  # ours in the catalog: access rules of application credentials name it
REMEMBERED: Final = "orchestrator.tokens"  # where in the environment the library finds what it remembers
# What a token is judged by: itself, the service's that passes it on, and what access rules are about.
JUDGED: Final = (
    "REQUEST_METHOD",
    "SCRIPT_NAME",
    "PATH_INFO",
    "SERVER_NAME",
    "SERVER_PORT",
    "wsgi.url_scheme",
    "HTTP_X_AUTH_TOKEN",
    "HTTP_X_SERVICE_TOKEN",
)

Environ = Mapping[str, Any]
Middleware = Callable[[dict[str, Any], Callable[..., object]], Iterable[bytes]]


class Keystone:
    """Says who a request is of."""

    def __init__(self, settings: Settings) -> None:
        """Take the settings.

        Raises:
            Misconfigured: the library is not installed, or a setting is missing.
        """
        self._challenge = f'Keystone uri="{_told(settings)}"'
        self._middleware = _middleware(settings)
        domain_admin(settings)
        self._remembered = Remembered()

    def __call__(self, environ: Environ) -> Caller:
        """Return whom a request's token stands for.

        Raises:
            Unauthenticated: it has none, or Keystone does not know it, or it expired.
            Unavailable: Keystone cannot be asked.
        """
        if not environ.get("HTTP_X_AUTH_TOKEN"):
            raise Unauthenticated(self._challenge)
        asked = {name: environ[name] for name in JUDGED if name in environ}
        status, token = self._ask({**asked, REMEMBERED: self._remembered})
        if token is not None:
            return caller_of(token, environ["HTTP_X_AUTH_TOKEN"])
        if status == 401:
            raise Unauthenticated(self._challenge)
        raise Unavailable(UNAVAILABLE)

    def _ask(self, environ: dict[str, Any]) -> tuple[int, Mapping[str, Any] | None]:
        """Return the library's verdict: a status, and what the token is when it is good."""
        said: list[int] = []

        def answer(status: str, _headers: object, _exc_info: object = None) -> Callable[[bytes], object]:
            said.append(int(status[:3]))
            return bytes  # the writer that WSGI wants, which nobody calls

        found: list[Mapping[str, Any]] = []
        environ["orchestrator.found"] = found
        try:
            for _ in self._middleware(environ, answer):
                pass
        except Exception as error:
            if not _is_keystones(error):
                raise
            return 503, None
        return (said or [503])[0], found[0] if found else None


def caller_of(token: Mapping[str, Any], text: str) -> Caller:
    """Return whom a token's contents stand for; without a project none of the API's paths is theirs.

    `text` is the token itself, as it was shown or as Keystone gave it for a signature.
    """
    user, project_id = token["user"], (token.get("project") or {}).get("id", "")
    roles = token.get("roles") or ()
    names = tuple(role["name"] for role in roles)
    return Caller(
        project_id=project_id,
        user=user["name"],
        roles=tuple(name for name in names if name != STACK_USER),  # that takes more: `bearers.as_stack_user`
        user_id=user["id"],
        login=Login(text, project_id, tuple(role["id"] for role in roles), names) if text else None,
        is_admin_project=token.get("is_admin_project", True),
    )


def service_user(settings: Settings) -> ServiceUser:
    """Return as whom Keystone is asked.

    Raises:
        Misconfigured: a setting is missing.
    """
    return ServiceUser(
        auth_url=_required(settings, "auth_url"),
        username=_required(settings, "username"),
        password=_required(settings, "password"),
        project_name=settings.keystone_project_name,
        user_domain_name=settings.keystone_user_domain_name,
        project_domain_name=settings.keystone_project_domain_name,
        cafile=settings.keystone_ca_file,
    )


def domain_admin(settings: Settings) -> DomainAdmin | None:
    """Return who manages the users of stacks, None where they have none at Keystone.

    Raises:
        Misconfigured: not all is set that it takes.
    """
    domain = settings.stack_user_domain_id or settings.stack_user_domain_name
    admin, password = settings.stack_domain_admin, settings.stack_domain_admin_password
    if settings.auth != "keystone" or not (domain or admin or password):
        return None
    if not (domain and admin and password):
        raise Misconfigured(
            "set all or none of ORCHESTRATOR_STACK_USER_DOMAIN_ID (or _NAME), ORCHESTRATOR_STACK_DOMAIN_ADMIN"
            " and ORCHESTRATOR_STACK_DOMAIN_ADMIN_PASSWORD"
        )
    return DomainAdmin(
        auth_url=_required(settings, "auth_url"),
        username=admin,
        password=password.get_secret_value(),
        role=settings.heat_stack_user_role,
        domain_id=settings.stack_user_domain_id,
        domain_name=settings.stack_user_domain_name,
        cafile=settings.keystone_ca_file,
    )


def _told(settings: Settings) -> str:
    return settings.keystone_www_authenticate_url or _required(settings, "auth_url")


def _required(settings: Settings, name: str) -> str:
    value = getattr(settings, f"keystone_{name}")
    if not value:
        raise Misconfigured(f"ORCHESTRATOR_AUTH is keystone: set ORCHESTRATOR_KEYSTONE_{name.upper()}")
    return str(value.get_secret_value() if name == "password" else value)


def _let_in(environ: dict[str, Any], start_response: Callable[..., object]) -> Iterable[bytes]:
    """Stand behind the library: who comes as far has a good token."""
    environ["orchestrator.found"].append(environ["keystone.token_info"]["token"])
    start_response("204 No Content", [])
    return ()


def _middleware(settings: Settings) -> Middleware:
    try:
        from keystoneauth1 import loading  # noqa: PLC0415 - an extra
        from keystonemiddleware.auth_token import AuthProtocol  # noqa: PLC0415
        from oslo_config import cfg  # noqa: PLC0415
    except ImportError as error:
        raise Misconfigured(
            "ORCHESTRATOR_AUTH is keystone, and keystonemiddleware is not installed: "
            "pip install 'stack-orchestrator[keystone]'"
        ) from error
    group = "keystone_authtoken"
    chosen = cfg.ConfigOpts()
    chosen([], project="orchestrator", default_config_files=[], default_config_dirs=[])
    chosen.register_opts(loading.get_auth_common_conf_options(), group=group)
    chosen.register_opts(loading.get_auth_plugin_conf_options("password"), group=group)
    plugin = {
        "auth_type": "password",
        "auth_url": _required(settings, "auth_url"),
        "username": _required(settings, "username"),
        "password": _required(settings, "password"),
        "project_name": settings.keystone_project_name,
        "user_domain_name": settings.keystone_user_domain_name,
        "project_domain_name": settings.keystone_project_domain_name,
    }
    for name, value in plugin.items():
        chosen.set_override(name, value, group=group)
    library = {
        "oslo_config_config": chosen,
        "www_authenticate_uri": _told(settings),
        "interface": settings.keystone_interface,
        "region_name": settings.keystone_region_name,
        "cafile": settings.keystone_ca_file and str(settings.keystone_ca_file),
        "service_type": SERVICE_TYPE,
        "include_service_catalog": True,  # where access rules look for our type
        "token_cache_time": settings.keystone_token_cache_seconds,
        "memcached_servers": settings.keystone_memcached_servers,
        "cache": None if settings.keystone_memcached_servers else REMEMBERED,
    }
    made: Middleware = AuthProtocol(_let_in, {name: it for name, it in library.items() if it is not None})
    return made


def _is_keystones(error: Exception) -> bool:
    """Whether asking Keystone failed, in a way that the library has no answer for."""
    from keystoneauth1.exceptions import ClientException  # noqa: PLC0415 - an extra

    return isinstance(error, ClientException)
