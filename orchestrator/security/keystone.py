"""Callers with a Keystone token (`auth = keystone`), verified by keystonemiddleware.

The library's middleware does not wrap our application. It is called once per request, with only the parts of
the request that it needs. So requests without a token are not verified, no header of a caller can be mistaken
for the library's results, and our responses stay unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, cast

from orchestrator.clients.keystone.http import EXCHANGE_SECONDS, UNAVAILABLE, ServiceUser
from orchestrator.clients.keystone.stack_domain import DomainAdmin
from orchestrator.config import Settings
from orchestrator.errors import Misconfigured, Unauthenticated, Unavailable
from orchestrator.json_types import JsonMapping
from orchestrator.resources.ec2_signatures import TOKEN_PREFIX
from orchestrator.security.caller import Caller, Login
from orchestrator.security.ended_sessions import TOKEN_CACHE_SECONDS
from orchestrator.security.resource_credentials import STACK_USER
from orchestrator.security.ttl_cache import TtlCache

# our type in the catalog: access rules of application credentials use it
SERVICE_TYPE: Final = "orchestration"
CACHE_KEY: Final = "orchestrator.tokens"  # key in the WSGI environment of the library's cache
# The token, the token of the service that forwards it, and the subject of access rules.
PASSED_ON: Final = (
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
    """Authenticator for Keystone tokens."""

    def __init__(self, settings: Settings) -> None:
        """Take the settings.

        Raises:
            Misconfigured: the library is not installed, or a setting is missing.
        """
        self._challenge = f'Keystone uri="{_www_authenticate_url(settings)}"'
        self._middleware = _middleware(settings)
        domain_admin(settings)
        self._remembered = TtlCache()

    def __call__(self, environ: Environ) -> Caller:
        """Return the caller of a request.

        Raises:
            Unauthenticated: it has no token, or the token is unknown or expired, or it has the form of a
                resource credential, of which Keystone knows none.
            Unavailable: Keystone does not respond.
        """
        if environ.get("HTTP_X_AUTH_TOKEN", TOKEN_PREFIX).startswith(TOKEN_PREFIX):
            raise Unauthenticated(self._challenge)
        headers = {name: environ[name] for name in PASSED_ON if name in environ}
        status, token = self._ask({**headers, CACHE_KEY: self._remembered})
        if token is not None:
            return caller_of(token, environ["HTTP_X_AUTH_TOKEN"])
        if status == 401:
            raise Unauthenticated(self._challenge)
        raise Unavailable(UNAVAILABLE)

    def _ask(self, environ: dict[str, object]) -> tuple[int, Mapping[str, Any] | None]:
        """Return the library's status, and the token's contents if the token is valid."""
        statuses: list[int] = []

        def answer(status: str, _headers: object, _exc_info: object = None) -> Callable[[bytes], object]:
            statuses.append(int(status[:3]))
            return bytes  # the `write` callable of WSGI; never called

        projects: list[JsonMapping] = []
        environ["orchestrator.found"] = projects
        try:
            for _ in self._middleware(environ, answer):
                pass
        except Exception as error:
            if not _is_keystones(error):
                raise
            return 503, None
        return (statuses or [503])[0], projects[0] if projects else None


def caller_of(token: JsonMapping, text: str) -> Caller:
    """Return the caller of a token. Without a project, no path of the API is allowed for it.

    `text` is the token itself, as received or as Keystone issued it for a signature.
    """
    user, project_id = token["user"], (token.get("project") or {}).get("id", "")
    roles = token.get("roles") or ()
    names = tuple(role["name"] for role in roles)
    return Caller(
        project_id=project_id,
        user=user["name"],
        # requires more: `resource_credentials.as_stack_user`
        roles=tuple(name for name in names if name != STACK_USER),
        user_id=user["id"],
        login=Login(text, project_id, tuple(role["id"] for role in roles), names, _endpoints(token), token)
        if text
        else None,
        is_admin_project=token.get("is_admin_project", True),
    )


def _endpoints(token: JsonMapping) -> frozenset[tuple[str, str]]:
    """Return service type and region of the public endpoints in a token's catalog."""
    return frozenset(
        (service["type"], endpoint.get("region_id") or endpoint.get("region") or "")
        for service in token.get("catalog") or ()
        for endpoint in service.get("endpoints") or ()
        if endpoint.get("interface") == "public"
    )


def service_user(settings: Settings) -> ServiceUser:
    """Return the service user that authenticates at Keystone.

    Raises:
        Misconfigured: a setting is missing.
    """
    return ServiceUser(
        auth_url=_required(settings, "auth_url"),
        username=_required(settings, "username"),
        password=_required(settings, "password"),
        project_name=settings.keystone_project_name,
        user_domain_name=settings.keystone_domain_name,
        project_domain_name=settings.keystone_domain_name,
        cafile=settings.keystone_ca_file,
    )


def domain_admin(settings: Settings) -> DomainAdmin | None:
    """Return the administrator of the stack domain, None if no stack domain is configured.

    Raises:
        Misconfigured: its settings are incomplete.
    """
    domain = settings.stack_user_domain_name
    admin, password = settings.stack_domain_admin, settings.stack_domain_admin_password
    if settings.auth != "keystone" or not (domain or admin or password):
        return None
    if not (domain and admin and password):
        raise Misconfigured(
            "set all or none of ORCHESTRATOR_STACK_USER_DOMAIN_NAME, ORCHESTRATOR_STACK_DOMAIN_ADMIN"
            " and ORCHESTRATOR_STACK_DOMAIN_ADMIN_PASSWORD"
        )
    return DomainAdmin(
        auth_url=_required(settings, "auth_url"),
        username=admin,
        password=password.get_secret_value(),
        role=STACK_USER,
        domain_name=domain,
        cafile=settings.keystone_ca_file,
    )


def _www_authenticate_url(settings: Settings) -> str:
    return settings.keystone_www_authenticate_url or _required(settings, "auth_url")


def _required(settings: Settings, name: str) -> str:
    value = getattr(settings, f"keystone_{name}")
    if not value:
        raise Misconfigured(f"ORCHESTRATOR_AUTH is keystone: set ORCHESTRATOR_KEYSTONE_{name.upper()}")
    return str(value.get_secret_value() if name == "password" else value)


def _accept(environ: dict[str, Any], start_response: Callable[..., object]) -> Iterable[bytes]:
    """The application behind the library: reached only with a valid token."""
    environ["orchestrator.found"].append(environ["keystone.token_info"]["token"])
    start_response("204 No Content", [])
    return ()


def _middleware(settings: Settings) -> Middleware:
    try:
        from keystoneauth1 import loading  # noqa: PLC0415 - an extra
        from keystonemiddleware.auth_token import AuthProtocol  # noqa: PLC0415
        from oslo_config import cfg  # noqa: PLC0415

        from orchestrator.clients.keystone.deadline_adapter import with_deadline  # noqa: PLC0415
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
        "user_domain_name": settings.keystone_domain_name,
        "project_domain_name": settings.keystone_domain_name,
    }
    for name, value in plugin.items():
        chosen.set_override(name, value, group=group)
    library = {
        "oslo_config_config": chosen,
        "www_authenticate_uri": _www_authenticate_url(settings),
        "interface": settings.keystone_interface,
        "region_name": settings.keystone_region_name,
        "cafile": settings.keystone_ca_file and str(settings.keystone_ca_file),
        "service_type": SERVICE_TYPE,
        "include_service_catalog": True,  # access rules find our type in it
        "token_cache_time": TOKEN_CACHE_SECONDS,
        "memcached_servers": settings.keystone_memcached_servers,
        "cache": None if settings.keystone_memcached_servers else CACHE_KEY,
    }
    made = AuthProtocol(_accept, {name: it for name, it in library.items() if it is not None})
    with_deadline(made._session, EXCHANGE_SECONDS)  # the library has no setting for it
    return cast(Middleware, made)


def _is_keystones(error: Exception) -> bool:
    """Whether a request to Keystone failed in a way that the library does not handle."""
    from keystoneauth1.exceptions import ClientException  # noqa: PLC0415 - an extra

    return isinstance(error, ClientException)
