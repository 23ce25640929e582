"""Settings: environment variables with the prefix ORCHESTRATOR_, or the content of a file named by
`ORCHESTRATOR_<NAME>_FILE`.

Names are Heat's where Heat has the setting. Nothing here opens a connection or reads a template.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from functools import cache
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal

from pydantic import Field, SecretStr, ValidationInfo, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

PREFIX = "ORCHESTRATOR_"

DAY = 24 * 3_600  # seconds
UNLIMITED: Final = -1

# Heat's own limits (docs/internals/rest-api.md §17), chosen together by `limits = heat`.
HEAT_LIMITS: dict[str, object] = {
    "max_json_body_size": 1_048_576,
    "max_template_size": 524_288,
    "max_resources_per_stack": 1_000,
    "max_nested_stack_depth": 5,
}
# -1: unlimited. `event_streams`: 0 is half of `max_event_streams`.
DEFAULT_QUOTAS: Final[Mapping[str, float]] = MappingProxyType(
    {
        "stacks": 100_000,
        "resources": 5_000_000,
        "snapshots_per_stack": 1_000,
        "software_configs": 100_000,
        "software_deployments": 100_000,
        "webhooks": 100,
        "large_value_bytes": 4 * 1024**3,
        "stored_bytes": 10 * 1024**3,
        "event_streams": 0,
        "requests_per_second": 300,
        "signals_per_second": 500,
    }
)
HEAT_QUOTAS: Final[Mapping[str, float]] = MappingProxyType(
    {"stacks": 512, "snapshots_per_stack": 32, "software_configs": 4_096, "software_deployments": 4_096}
)
# Seconds, except for the number of revisions per stack in addition to those in use.
DEFAULT_RETENTION: Final[Mapping[str, float]] = MappingProxyType(
    {"deleted_stacks": 30 * DAY, "events": 90 * DAY, "revisions": 50, "audit_records": 365 * DAY}
)
MAX_SLOW_BODIES: Final = 32  # request bodies received slowly, per API process; each holds a thread
INLINE_BODY_SIZE: Final = 100_000  # bytes; a larger body is parsed in a separate process


class Settings(BaseSettings):
    """The settings of an installation."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="ignore")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 - the signature is the library's
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Read arguments and the environment. The other sources have no file, and take as long again."""
        return init_settings, env_settings

    # Servers. If unset, `orchestrator up` starts its own.
    database_url: SecretStr | None = None
    broker_url: SecretStr | None = None
    host: str = "127.0.0.1"
    port: int = Field(default=8004, ge=1, le=65535)
    cfn_port: int | None = Field(default=None, ge=1, le=65535)  # for CloudFormation clients, with `up`
    data_dir: Path = Path(".orchestrator")
    # Base URL at which servers reach the API, for signed URLs. Default: host and port above.
    heat_metadata_server_url: str | None = None
    environment_dir: Path | None = None  # environments of the operator, *.yaml: resource_registry only

    # Authentication and policy.
    auth: Literal["none", "token", "basic", "keystone"] | None = None  # `up` uses `none` if unset
    anonymous_admin: bool = False  # give every caller the role admin with `auth = none`
    users_file: Path | None = None  # users of `auth = basic`: security/password_file.py
    policy_file: Path | None = None  # overrides of the default policy: security/policy.py
    audit_required: bool = False  # refuse requests whose audit record cannot be stored in the database
    trusted_proxies: int = Field(default=0, ge=0)  # number of proxies that set X-Forwarded-*
    # Addresses and networks of the nearest of these proxies, separated by commas. api/middleware/proxies.py.
    trusted_proxy_addresses: str = "127.0.0.0/8,::1"
    # Browsers: api/middleware/local_requests.py, api/middleware/cross_site.py. Separated by commas.
    allowed_hosts: str = ""  # names of this server besides loopback names, for `auth = none`
    allowed_origins: str = ""  # scheme://host[:port] of other sites whose pages may change stacks
    encryption_keys: SecretStr | None = None  # Fernet keys, newest first, separated by commas

    # `auth = keystone`: the identity service and the service user. security/keystone.py.
    keystone_auth_url: str | None = None  # http://host:5000/v3
    keystone_www_authenticate_url: str | None = None  # URL in challenges; default: the URL above
    keystone_username: str | None = None
    keystone_password: SecretStr | None = None
    keystone_project_name: str = "service"
    keystone_domain_name: str = "Default"  # of the user and the project
    keystone_region_name: str | None = None
    keystone_interface: Literal["public", "internal", "admin"] = "internal"
    keystone_ca_file: Path | None = None  # a private certificate authority
    keystone_memcached_servers: str | None = None  # host:port,…; default: a cache per process
    # Delegation from the creator of a stack: operations/keystone/delegated_credentials.py.
    deferred_auth_method: Literal["trusts", "application_credential", "none"] = "trusts"
    trusts_delegated_roles: str = ""  # comma-separated names, `*`: all of the token; default: without admin
    allow_trusts_redelegation: bool = False  # allow called services to create further trusts
    # Domain of the stack users, for signals: operations/keystone/stack_users.py. Default: no stack users.
    stack_user_domain_name: str | None = None
    stack_domain_admin: str | None = None
    stack_domain_admin_password: SecretStr | None = None

    # Logs and metrics.
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    metrics_address: str | None = Field(default=None, pattern=r"^(.+:\d{1,5})?$")  # of a worker's metrics
    metrics_token: SecretStr | None = None  # bearer token for readers on other machines
    # Base URL of Flower as browsers reach it, for links of the console. `up --flower` sets it.
    flower_url: str | None = Field(default=None, pattern=r"^(https?://[^\s]+)?$")

    # Limits, docs/internals/design.md "Limits".
    limits: Literal["default", "heat"] = "default"
    max_json_body_size: int = 256 * 1024 * 1024
    max_template_size: int = 256 * 1024 * 1024
    max_resources_per_stack: int = 2_000_000
    max_nested_stack_depth: int = 10
    # Of a project without quotas (operations/quotas/): DEFAULT_QUOTAS, with these instead.
    quotas: Annotated[dict[str, float], NoDecode] = Field(default_factory=dict, validate_default=True)
    # Requests per second and API process; 0 and -1: unlimited. api/limits/rate_limits.py.
    request_rate_per_caller: float = Field(default=0.0, ge=-1)
    # Requests without valid credentials. api/limits/failed_logins.py.
    unauthenticated_rate_per_address: float = Field(default=20.0, ge=-1)
    # Per caller and per project, in each API process; 0: half of the threads, -1: unlimited.
    max_concurrent_requests: int = Field(default=0, ge=-1)
    max_event_streams: int = Field(default=32, ge=0)  # per API process; each holds a thread
    stack_action_timeout: int = 3_600  # seconds
    hidden_stack_tags: str = "data-processing-cluster"

    # Other regions: clients/region_catalog.py.
    region_name: str = "RegionOne"
    catalog_file: Path | None = None  # endpoints and credentials of other regions

    # Private addresses in URLs: clients/url_fetcher.py, operations/events/webhook_delivery.py.
    template_fetch_allow_private: bool = False
    webhook_allow_private: bool = False

    # The continuous observation (operations/adr/0017).
    observation: bool = True
    notifications_url: SecretStr | None = None  # brokers of OpenStack's services, separated by spaces

    # Abandon and adopt are disabled unless the operator allows them, as in Heat.
    enable_stack_abandon: bool = False
    enable_stack_adopt: bool = False

    # The engine.
    action_retry_limit: int = Field(default=5, ge=0)

    # What `purge` keeps (operations/maintenance/purge.py): DEFAULT_RETENTION, with these instead.
    retention: Annotated[dict[str, float], NoDecode] = Field(default_factory=dict, validate_default=True)

    @model_validator(mode="before")
    @classmethod
    def _secrets_from_files(cls, values: dict[str, object]) -> dict[str, Any]:
        for name in cls.model_fields:
            path = os.environ.get(f"{PREFIX}{name.upper()}_FILE")
            if path and values.get(name) is None:
                values[name] = Path(path).read_text().strip()
        return values

    @model_validator(mode="before")
    @classmethod
    def _heat_limits(cls, values: dict[str, object]) -> dict[str, Any]:
        return {**HEAT_LIMITS, **values} if values.get("limits") == "heat" else values

    @field_validator("quotas", mode="before")
    @classmethod
    def _quotas(cls, given: object, info: ValidationInfo) -> dict[str, float]:
        heat = HEAT_QUOTAS if info.data.get("limits") == "heat" else {}
        return {**DEFAULT_QUOTAS, **heat, **_numbers(given, DEFAULT_QUOTAS)}

    @field_validator("retention", mode="before")
    @classmethod
    def _retention(cls, given: object) -> dict[str, float]:
        return {**DEFAULT_RETENTION, **_numbers(given, DEFAULT_RETENTION)}

    @property
    def address(self) -> str:
        """The URL at which this machine reaches the API."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104 - not bound
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"

    @property
    def endpoint(self) -> str:
        """The API's base URL for resources of a stack, without the version."""
        configured = (self.heat_metadata_server_url or "").rstrip("/").removesuffix("/v1")
        return configured.rstrip("/") or self.address

    @property
    def loopback(self) -> bool:
        """Whether `host` can be reached from this machine only."""
        return is_loopback(self.host)


def _numbers(given: object, known: Collection[str]) -> dict[str, float]:
    """Return numbers by name, from a map or a text such as `stacks=100,webhooks=5`."""
    pairs = (
        given
        if isinstance(given, Mapping)
        else dict(item.strip().partition("=")[::2] for item in str(given).split(",") if item.strip())
    )
    try:
        numbers = {str(name): float(value) for name, value in pairs.items()}
    except ValueError:
        raise ValueError("must be NAME=NUMBER, separated by commas") from None
    for name, number in numbers.items():
        if name not in known or number < UNLIMITED:
            raise ValueError(f"{name}={number:g}: names are {', '.join(known)}, numbers at least {UNLIMITED}")
    return {name: int(number) if number.is_integer() else number for name, number in numbers.items()}


def is_loopback(host: str) -> bool:
    """Whether a server on this host is reachable from this machine only."""
    if host == "localhost":
        return True
    try:
        address = ip_address(host)
    except ValueError:  # a name, which may resolve to any address
        return False
    embedded = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (embedded or address).is_loopback


@cache
def settings() -> Settings:
    """Return the process's settings, read once."""
    return Settings()
