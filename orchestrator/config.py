"""Settings: environment variables with the prefix ORCHESTRATOR_, a secret also as a file named by
`<NAME>_FILE`.

Names are Heat's where Heat has the setting. Nothing here opens a connection or reads a template.
"""

from __future__ import annotations

import os
from functools import cache
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, SecretStr, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

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
    """Everything an installation may choose."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="ignore")

    # Servers. Unset means: `orchestrator up` starts its own.
    database_url: SecretStr | None = None
    broker_url: SecretStr | None = None
    host: str = "127.0.0.1"
    port: int = Field(default=8004, ge=1, le=65535)
    cfn_port: int | None = Field(
        default=None,
        ge=1,
        le=65535,
        description="where `up` listens, too, as CloudFormation's clients expect",
    )
    data_dir: Path = Path(".orchestrator")
    # Where servers reach the API, for the URLs they signal at: http://host:port; unset: host and port above.
    heat_metadata_server_url: str | None = None
    environment_dir: Path | None = None  # the operator's own environments, *.yaml: resource_registry only

    # Who may call.
    auth: Literal["none", "token", "basic", "keystone"] = "none"
    anonymous_admin: bool = Field(
        default=False, description="whether everybody is an admin while nobody is asked who they are"
    )
    users_file: Path | None = None  # who may call with `auth = basic`: security/password_file.py
    policy_file: Path | None = None  # who may do what, where it is not as shipped: security/policy.py
    trusted_proxies: int = Field(default=0, ge=0, description="how many proxies in front set X-Forwarded-*")
    encryption_keys: SecretStr | None = None  # Fernet keys, newest first, separated by commas

    # `auth = keystone`: where tokens are checked, and as whom. security/keystone.py.
    keystone_auth_url: str | None = None  # http://host:5000/v3
    keystone_www_authenticate_url: str | None = None  # what callers are told; unset: the one above
    keystone_username: str | None = None
    keystone_password: SecretStr | None = None
    keystone_project_name: str = "service"
    keystone_user_domain_name: str = "Default"
    keystone_project_domain_name: str = "Default"
    keystone_region_name: str | None = None
    keystone_interface: Literal["public", "internal", "admin"] = "internal"
    keystone_ca_file: Path | None = None  # where the system's authorities do not know it
    keystone_memcached_servers: str | None = None  # host:port,…; unset: each process remembers by itself
    keystone_token_cache_seconds: int = Field(
        default=300, ge=0, description="how long a token is not asked about again, and so is good if revoked"
    )
    # What a stack is given of who makes it, to act for them later:
    # operations/keystone/delegated_credentials.py.
    deferred_auth_method: Literal["trusts", "application_credential", "none"] = "trusts"
    trusts_delegated_roles: str = ""  # names with commas; none: all that the caller's token has
    allow_trusts_redelegation: bool = Field(
        default=False, description="whether what is called with a trust may make further ones from it"
    )
    # The domain in which stacks have users of their own, for signals: operations/keystone/stack_users.py.
    # Unset: none.
    stack_user_domain_id: str | None = None
    stack_user_domain_name: str | None = None  # where its id is not known
    stack_domain_admin: str | None = None
    stack_domain_admin_password: SecretStr | None = None
    heat_stack_user_role: str = "heat_stack_user"

    # Watching it.
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    metrics_port: int = Field(default=0, ge=0, le=65535, description="of a worker's own figures; 0: none")
    metrics_host: str = "127.0.0.1"
    metrics_token: SecretStr | None = None  # who reads figures from elsewhere shows it

    # Limits, docs/internals/design.md "Limits".
    limits: Literal["ours", "heat"] = "ours"
    max_json_body_size: int = 256 * 1024 * 1024
    max_template_size: int = 256 * 1024 * 1024
    max_resources_per_stack: int = 2_000_000
    max_stacks_per_tenant: int = 100_000
    request_rate_per_project: float = Field(
        default=0.0, ge=0, description="a second, of each API process; 0: any"
    )
    request_rate_per_caller: float = Field(default=0.0, ge=0, description="the same of a token or an address")
    request_burst_seconds: float = Field(
        default=10.0, gt=0, description="of such requests at once, after a pause"
    )
    max_nested_stack_depth: int = 10
    max_snapshots_per_stack: int = Field(default=1_000, ge=-1, description="-1: any number")
    max_software_configs_per_tenant: int = Field(default=100_000, ge=-1, description="-1: any number")
    max_software_deployments_per_tenant: int = Field(default=100_000, ge=-1, description="-1: any number")
    stack_action_timeout: int = Field(default=3_600, description="seconds")
    max_yaml_depth: int = 100
    max_yaml_nodes: int = 50_000_000
    hidden_stack_tags: str = "data-processing-cluster"

    # Other regions: clients/region_catalog.py.
    region_name: str = Field(default="RegionOne", description="what this one is called")
    catalog_file: Path | None = None  # where other regions are, and as whom each project calls them

    # Texts that a template or a request names by an address, fetched by the API: clients/url_fetcher.py.
    max_fetched_size: int = Field(default=4 * 1024 * 1024, ge=1, description="bytes of one")
    template_fetch_timeout: float = Field(default=60.0, gt=0, description="seconds, for all of one request")
    template_fetch_private: bool = Field(
        default=False, description="whether from addresses that only this network has"
    )

    # Who is told of events as they happen: api/streaming/hub.py, operations/events/webhook_delivery.py.
    max_event_streams: int = Field(default=32, ge=0, description="of one API process; each holds a thread")
    max_webhooks_per_tenant: int = Field(default=100, ge=-1, description="-1: any number")
    webhook_private: bool = Field(
        default=False, description="whether webhooks may be at addresses that only this network has"
    )
    webhook_timeout: float = Field(default=10.0, gt=0, description="seconds that one delivery may take")
    webhook_tries: int = Field(default=24, ge=1, description="in vain; then the webhook is dead")

    max_observed_in_preview: int = Field(default=500, ge=0, description="resources looked at for one answer")

    # What is off unless an operator wants it: letting stacks go, and taking over what others made.
    enable_stack_abandon: bool = False
    enable_stack_adopt: bool = False

    # The engine.
    action_retry_limit: int = Field(default=5, ge=0)
    check_batch: int = Field(default=1, ge=1, le=50)
    ring_window: int = Field(default=256, ge=1, description="messages outstanding per root stack")
    lease_seconds: float = 30.0
    sweep_interval_seconds: float = 0.5
    ring_again_seconds: float = 5.0
    inline_body_size: int = Field(
        default=100_000, description="bytes; a larger body is parsed in its own process"
    )
    planner_memory_limit: int = Field(
        default=6 * 1024**3, description="bytes of address space of that process"
    )

    # What is kept, operations/maintenance/purge.py.
    purge_deleted_after_seconds: int = Field(default=30 * DAY, ge=0)
    events_kept_seconds: int = Field(default=90 * DAY, ge=0)
    revisions_kept: int = Field(default=50, ge=0, description="of a stack, besides those in use")
    revisions_kept_seconds: int = Field(default=DAY, ge=0, description="younger ones are kept, however many")
    nodes_kept_seconds: int = Field(default=3_600, ge=0, description="finished visits of a stack at rest")

    @model_validator(mode="before")
    @classmethod
    def _secrets_from_files(cls, values: dict[str, Any]) -> dict[str, Any]:
        for name in cls.model_fields:
            path = os.environ.get(f"{PREFIX}{name.upper()}_FILE")
            if path and values.get(name) is None:
                values[name] = Path(path).read_text().strip()
        return values

    @model_validator(mode="before")
    @classmethod
    def _heat_limits(cls, values: dict[str, Any]) -> dict[str, Any]:
        return {**HEAT_LIMITS, **values} if values.get("limits") == "heat" else values

    @property
    def address(self) -> str:
        """The URL at which this machine reaches the API."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104 - not bound
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"

    @property
    def endpoint(self) -> str:
        """The API's address for those who are told one in a stack, without the version."""
        told = (self.heat_metadata_server_url or "").rstrip("/").removesuffix("/v1")
        return told.rstrip("/") or self.address

    @property
    def loopback(self) -> bool:
        """Whether `host` can be reached from this machine only."""
        return is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """Whether what listens there can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:  # a name, which may lead anywhere
        return False


@cache
def settings() -> Settings:
    """Return the process's settings, read once."""
    return Settings()
