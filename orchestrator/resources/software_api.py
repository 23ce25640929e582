"""Software configs and deployments as types see them: the values, and the store behind `ctx.software`.

A config is a script or a data structure with a schema of inputs and outputs; it never changes. A deployment
says that a machine shall carry out a config; an agent on the machine reads it and tells how it went
(docs/internals/rest-api.md §12). Both are rows of ours that outlive a visit, so types treat them like things
of a provider: made under a token, found by it, gone when asked to.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, cast

from orchestrator.errors import ProviderError
from orchestrator.resources.stack_context import StackLocation

Value = Any  # what JSON can say

UNGROUPED: Final = "Heat::Ungrouped"
COMPONENT: Final = "component"  # the group of a config that holds one for each action

_MADE_UNDER: Final = uuid.UUID("9d0c3f0a-6f0e-5a52-9b5b-5a4a3f6f2d11")  # ours, for ids made of tokens


@dataclass(frozen=True, slots=True)
class ConfigDraft:
    """What a config is to be. `inputs` and `outputs` are as `builtin/software_io.py` reads them."""

    name: str | None = None
    group: str | None = UNGROUPED
    config: Value = None  # a text or a map
    inputs: Sequence[Mapping[str, Value]] = ()
    outputs: Sequence[Mapping[str, Value]] = ()
    options: Value = None


@dataclass(frozen=True, slots=True)
class Config:
    """One config as it was made."""

    id: str
    draft: ConfigDraft


@dataclass(frozen=True, slots=True)
class DeploymentDraft:
    """What one action has a machine do: a config made for it alone, with the values of its inputs."""

    server_id: str
    action: str
    config: ConfigDraft
    input_values: Mapping[str, Value] | None
    waits: bool  # for the agent to tell how it went


@dataclass(frozen=True, slots=True)
class Deployment:
    """One deployment as it is now."""

    id: str
    server_id: str
    config_id: str
    action: str | None
    status: str | None  # IN_PROGRESS until the agent has told
    status_reason: str | None
    output_values: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Credentials:
    """What an agent has in hand, made for one server or deployment alone."""

    key: str  # public
    secret: str = field(repr=False)  # what it signs requests with
    token: str = field(repr=False)


class SoftwareStore(Protocol):
    """The configs, deployments and machines of the project that a visit is for."""

    @property
    def place(self) -> StackLocation:
        """Where the visited resource is."""

    def add_config(self, config_id: str, draft: ConfigDraft, *, secret: bool) -> None:
        """Make a config unless it is there; `secret` masks it in answers."""

    def config(self, config_id: str) -> Config | None:
        """Return a config, None when there is none."""

    def remove_config(self, config_id: str) -> None:
        """Remove a config; already gone is fine.

        Raises:
            ProviderError: a deployment refers to it.
        """

    def deployment(self, deployment_id: str) -> Deployment | None:
        """Return a deployment, None when there is none."""

    def deploy(self, deployment_id: str, draft: DeploymentDraft, *, secret: bool) -> None:
        """Publish what a machine is to do, in place of what the deployment had it do before.

        The same action of the same traversal does so once, however often it is asked.
        """

    def signal(self, deployment_id: str, details: Mapping[str, Value]) -> str:
        """Take in how it went, if the deployment still waits for that; return what to tell of it."""

    def cancel(self, deployment_id: str) -> None:
        """Wait no longer for a deployment: it has failed."""

    def remove_deployment(self, deployment_id: str) -> None:
        """Remove a deployment with the config that was made for it; already gone is fine."""

    def was_lost(self, deployment_id: str) -> bool:
        """Whether a deployment's machine was there when it was last published, and is gone."""

    def published(self, server_id: str) -> Sequence[Mapping[str, Value]]:
        """Return the configs that a machine is to carry out, by their names."""

    def add_server(self, server_id: str) -> None:
        """Note that there is a machine; again is fine."""

    def has_server(self, server_id: str) -> bool:
        """Whether a machine is noted."""

    def remove_server(self, server_id: str) -> None:
        """Note that a machine is gone: nobody waits any more for what it was to do before that."""

    def credentials(self, thing_id: str) -> Credentials:
        """Return the credentials of a machine's or a deployment's agent, made when first asked for."""

    def forget(self, thing_id: str) -> None:
        """Let the credentials of a thing that goes be worth nothing."""


class _Unconnected:
    """Stands where no store was given: a type that is asked without one cannot work."""

    def __getattr__(self, name: str) -> Any:
        message = "The store of software configs cannot be reached from here."
        raise ProviderError(message, kind="Error")


UNCONNECTED: Final = cast(SoftwareStore, _Unconnected())


def id_of(token: str) -> str:
    """Return the id of what is made under a token: every try gives the same one."""
    return str(uuid.uuid5(_MADE_UNDER, token))


class ConfigNotFound(ProviderError):
    """A config that is referred to is not there."""

    def __init__(self, config_id: str) -> None:
        """Name it, in Heat's words."""
        super().__init__(f"Software config with id {config_id} not found", kind="NotFound")
