"""Settings: environment variables with the prefix ORCHESTRATOR_, or the content of a file named by
`ORCHESTRATOR_<NAME>_FILE`.

Names are Heat's where Heat has the setting. Nothing here opens a connection or reads a template.
"""

from __future__ import annotations

import os
from functools import cache
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, SecretStr, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

PREFIX = "ORCHESTRATOR_"

DAY = 24 * 3_600  # seconds

# Heat's own limits (docs/internals/rest-api.md §17), chosen together by `limits = heat`.
HEAT_LIMITS: dict[str, int] = {
    "max_json_body_size": 1_048_576,
    "max_template_size": 524_288,
    "max_resources_per_stack": 1_000,
    "max_stacks_per_tenant": 512,
    "max_nested_stack_depth": 5,
    "max_snapshots_per_stack": 32,
    "max_software_configs_per_tenant": 4_096,
    "max_software_deployments_per_tenant": 4_096,
}


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
    cfn_port: int | None = Field(
        default=None,
        ge=1,
        le=65535,
        description="second port of the API for CloudFormation clients, with `up`",
    )
    data_dir: Path = Path(".orchestrator")
    # Base URL at which servers reach the API, for signed URLs. Default: host and port above.
    heat_metadata_server_url: str | None = None
    environment_dir: Path | None = None  # environments of the operator, *.yaml: resource_registry only

    # Authentication and policy.
    auth: Literal["none", "token", "basic", "keystone"] | None = None  # `up` uses `none` if unset
    anonymous_admin: bool = Field(
        default=False, description="give every caller the role admin with `auth = none`"
    )
    users_file: Path | None = None  # users of `auth = basic`: security/password_file.py
    simulated_cloud: bool = Field(
        default=False, description="the Keystone is simulated; set by `orchestrator up --cloud simulated`"
    )
    policy_file: Path | None = None  # overrides of the default policy: security/policy.py
    audit_required: bool = Field(
        default=False, description="refuse requests whose audit record cannot be stored in the database"
    )
    trusted_proxies: int = Field(default=0, ge=0, description="number of proxies that set X-Forwarded-*")
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
    keystone_user_domain_name: str = "Default"
    keystone_project_domain_name: str = "Default"
    keystone_region_name: str | None = None
    keystone_interface: Literal["public", "internal", "admin"] = "internal"
    keystone_ca_file: Path | None = None  # a private certificate authority
    keystone_memcached_servers: str | None = None  # host:port,…; default: a cache per process
    keystone_token_cache_seconds: int = Field(
        default=300, ge=0, description="lifetime of a cached token; a revoked token stays valid this long"
    )
    # Delegation from the creator of a stack: operations/keystone/delegated_credentials.py.
    deferred_auth_method: Literal["trusts", "application_credential", "none"] = "trusts"
    trusts_delegated_roles: str = ""  # comma-separated names, `*`: all of the token; default: without admin
    allow_trusts_redelegation: bool = Field(
        default=False, description="allow called services to create further trusts"
    )
    # Domain of the stack users, for signals: operations/keystone/stack_users.py. Default: no stack users.
    stack_user_domain_id: str | None = None
    stack_user_domain_name: str | None = None  # alternative to the id
    stack_domain_admin: str | None = None
    stack_domain_admin_password: SecretStr | None = None
    heat_stack_user_role: str = "heat_stack_user"

    # Logs and metrics.
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    metrics_port: int = Field(
        default=0, ge=0, le=65535, description="port for the metrics of a worker; 0: none"
    )
    metrics_host: str = "127.0.0.1"
    metrics_token: SecretStr | None = None  # bearer token for readers on other machines

    # Base URL of Flower as browsers reach it, for links of the console. `up --flower` sets it.
    flower_url: str | None = Field(default=None, pattern=r"^(https?://[^\s]+)?$")

    # Limits, docs/internals/design.md "Limits".
    limits: Literal["default", "heat"] = "default"
    max_json_body_size: int = 256 * 1024 * 1024
    max_template_size: int = 256 * 1024 * 1024
    max_resources_per_stack: int = 2_000_000
    max_stacks_per_tenant: int = 100_000
    max_resources_per_tenant: int = Field(default=5_000_000, ge=-1, description="-1: unlimited")
    # Requests per second and API process; 0 and -1: unlimited. api/limits/rate_limits.py.
    request_rate_per_project: float = Field(default=300.0, ge=-1)
    signal_rate_per_project: float = Field(default=500.0, ge=-1)
    request_rate_per_caller: float = Field(default=0.0, ge=-1)
    # Requests without valid credentials. api/limits/failed_logins.py.
    unauthenticated_rate_per_address: float = Field(default=20.0, ge=-1)
    request_burst_seconds: float = Field(default=10.0, gt=0, description="burst size, in seconds of the rate")
    max_concurrent_requests: int = Field(
        default=0,
        ge=-1,
        description="per caller and per project, in each API process; 0: half of the threads, -1: unlimited",
    )
    max_slow_bodies: int = Field(
        default=32,
        ge=1,
        description="request bodies received slowly, per API process; each holds a thread, and a caller may "
        "have a quarter of them",
    )
    max_large_value_bytes_per_stack: int = Field(
        default=1024**3, ge=-1, description="of values beyond 64 KiB, with nested stacks; -1: unlimited"
    )
    max_large_value_bytes_per_tenant: int = Field(
        default=4 * 1024**3, ge=-1, description="the same for a project; -1: unlimited"
    )
    max_stored_bytes_per_tenant: int = Field(
        default=10 * 1024**3,
        ge=-1,
        description="of revisions, snapshots and software configs, also of deleted stacks; -1: unlimited",
    )
    max_nested_stack_depth: int = 10
    max_snapshots_per_stack: int = Field(default=1_000, ge=-1, description="-1: unlimited")
    max_software_configs_per_tenant: int = Field(default=100_000, ge=-1, description="-1: unlimited")
    max_software_deployments_per_tenant: int = Field(default=100_000, ge=-1, description="-1: unlimited")
    stack_action_timeout: int = Field(default=3_600, description="seconds")
    max_yaml_depth: int = 100
    max_yaml_nodes: int = 50_000_000
    hidden_stack_tags: str = "data-processing-cluster"

    # Other regions: clients/region_catalog.py.
    region_name: str = Field(default="RegionOne", description="name of this region")
    catalog_file: Path | None = None  # endpoints and credentials of other regions

    # Documents that the API fetches by URL: clients/url_fetcher.py.
    max_fetched_size: int = Field(default=4 * 1024 * 1024, ge=1, description="bytes per document")
    template_fetch_timeout: float = Field(
        default=60.0, gt=0, description="seconds for all fetches of a request"
    )
    template_fetch_allow_private: bool = Field(default=False, description="allow private addresses")

    # Delivery of events: api/streaming/hub.py, operations/events/webhook_delivery.py.
    max_event_streams: int = Field(default=32, ge=0, description="per API process; each holds a thread")
    max_event_streams_per_tenant: int = Field(
        default=0, ge=-1, description="per API process; 0: half of `max_event_streams`, -1: unlimited"
    )
    max_webhooks_per_tenant: int = Field(default=100, ge=-1, description="-1: unlimited")
    webhook_allow_private: bool = Field(default=False, description="allow private addresses")
    webhook_timeout: float = Field(default=10.0, gt=0, description="seconds per delivery")
    webhook_max_attempts: int = Field(
        default=24, ge=1, description="consecutive failures until the webhook is dead"
    )

    signal_fast_path: bool = True  # api/middleware/signal_fast_path.py

    # The continuous observation (operations/adr/0017). Intervals in seconds.
    observation_interval_seconds: float = Field(
        default=60.0, ge=0, description="longest interval of rounds over lists; 0: nothing is observed"
    )
    observation_min_interval_seconds: float = Field(
        default=5.0, gt=0, description="shortest interval, after a change, a fault or a notification"
    )
    observation_single_interval_seconds: float = Field(
        default=600.0, gt=0, description="interval of resources that need a request each"
    )

    # Automatic repairs (operations/adr/0019).
    repair_share: float = Field(
        default=0.2, gt=0, le=1, description="share of a group or a stack that is repaired at once"
    )
    repair_at_least: int = Field(
        default=10, ge=1, description="resources of a stack repaired at once, even if that is a larger share"
    )

    # Brokers with the notifications of OpenStack's services, separated by spaces.
    notifications_url: SecretStr | None = None
    notifications_topics: str = "notifications"  # separated by commas
    max_preview_observations: int = Field(default=500, ge=0, description="resources observed per preview")

    # Abandon and adopt are disabled unless the operator allows them, as in Heat.
    enable_stack_abandon: bool = False
    enable_stack_adopt: bool = False

    # The engine.
    action_retry_limit: int = Field(default=5, ge=0)
    retry_max_seconds: float = Field(
        default=60.0, gt=0, description="maximum pause between two attempts of an operation"
    )
    quota_wait_seconds: float = Field(
        default=600.0, ge=0, description="how long an operation waits for quota at the provider"
    )
    # Resources may start when a requirement exists, before it is ready, if its type permits it.
    early_release: bool = True
    dispatch_window: int = Field(default=256, ge=1, description="messages outstanding per root stack")
    lease_seconds: float = 30.0
    sweep_interval_seconds: float = 0.5
    provider_concurrency: int = Field(
        default=16,
        ge=1,
        description="requests at a time to a service of a project in a region, per process; the number in "
        "use adapts to the service",
    )
    re_enqueue_seconds: float = 5.0
    inline_body_size: int = Field(
        default=100_000, description="bytes; a larger body is parsed in a separate process"
    )
    max_parsing_processes: int = Field(
        default=4, ge=1, description="per API process, at a time; a project uses at most half of them"
    )
    planner_memory_limit: int = Field(
        default=6 * 1024**3, description="address space of that process in bytes"
    )

    # Retention: operations/maintenance/purge.py.
    purge_deleted_after_seconds: int = Field(default=30 * DAY, ge=0)
    event_retention_seconds: int = Field(default=90 * DAY, ge=0)
    revision_retention_count: int = Field(
        default=50, ge=0, description="per stack, in addition to revisions in use"
    )
    revision_retention_seconds: int = Field(
        default=DAY, ge=0, description="younger revisions are never purged"
    )
    node_retention_seconds: int = Field(
        default=3_600, ge=0, description="finished nodes of a stack without an action in progress"
    )

    audit_retention_seconds: int = Field(default=365 * DAY, ge=0)

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
