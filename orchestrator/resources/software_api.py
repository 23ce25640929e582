"""Software configs and deployments for resource types: the values, and the store behind `ctx.software`.

A config is a script or a data structure with a schema of inputs and outputs; it is immutable. A deployment
assigns a config to a server; an agent on the server reads it and reports the result
(docs/internals/rest-api.md §12). Both are rows of our own that outlive a visit, so types treat them like
objects of a provider: created under a token, looked up by it, deleted on request.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, cast

from orchestrator.errors import ProviderError
from orchestrator.resources.stack_context import StackLocation

Value = Any  # a JSON value

UNGROUPED: Final = "Heat::Ungrouped"
COMPONENT: Final = "component"  # the group of a config that holds a config per action

_MADE_UNDER: Final = uuid.UUID("9d0c3f0a-6f0e-5a52-9b5b-5a4a3f6f2d11")  # namespace of ids derived from tokens


@dataclass(frozen=True, slots=True)
class ConfigDraft:
    """The content of a config. `inputs` and `outputs` are in the form that `builtin/software_io.py`
    returns.
    """

    name: str | None = None
    group: str | None = UNGROUPED
    config: Value = None  # a text or a map
    inputs: Sequence[Mapping[str, Value]] = ()
    outputs: Sequence[Mapping[str, Value]] = ()
    options: Value = None


@dataclass(frozen=True, slots=True)
class Config:
    """A stored config."""

    id: str
    draft: ConfigDraft


@dataclass(frozen=True, slots=True)
class DeploymentDraft:
    """The work of an action on a server: a dedicated config with the values of its inputs."""

    server_id: str
    action: str
    config: ConfigDraft
    input_values: Mapping[str, Value] | None
    waits: bool  # whether the action waits for the agent's result


@dataclass(frozen=True, slots=True)
class Deployment:
    """The current state of a deployment."""

    id: str
    server_id: str
    config_id: str
    action: str | None
    status: str | None  # IN_PROGRESS until the agent has reported a result
    status_reason: str | None
    output_values: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Credentials:
    """The credentials of an agent, created for a single server or deployment."""

    key: str  # public
    secret: str = field(repr=False)  # signs requests
    token: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class MetadataObject:
    """The object in an object store from which the agent on a server reads its metadata."""

    container: str
    name: str
    url: str = field(repr=False)  # grants access to the object


class SoftwareStore(Protocol):
    """The configs, deployments and machines of the project that a visit is for."""

    @property
    def place(self) -> StackLocation:
        """Where the visited resource is."""

    def add_config(self, config_id: str, draft: ConfigDraft, *, secret: bool) -> None:
        """Create a config unless it exists; `secret` masks it in responses."""

    def config(self, config_id: str) -> Config | None:
        """Return a config, None if it does not exist."""

    def remove_config(self, config_id: str) -> None:
        """Delete a config; a config that is already gone is no error.

        Raises:
            ProviderError: a deployment refers to it.
        """

    def deployment(self, deployment_id: str) -> Deployment | None:
        """Return a deployment, None if it does not exist."""

    def deploy(self, deployment_id: str, draft: DeploymentDraft, *, secret: bool) -> None:
        """Publish a deployment to its server, in place of its previous content.

        Idempotent for the same action of the same traversal.
        """

    def publication(self, action: str) -> str:
        """Return the name of the publication of an action by this visit; the same for every attempt."""

    def signal(self, deployment_id: str, details: Mapping[str, Value]) -> str:
        """Process a reported result if the deployment still waits for it; return the event's reason."""

    def cancel(self, deployment_id: str) -> None:
        """Wait no longer for a deployment: it has failed."""

    def remove_deployment(self, deployment_id: str) -> None:
        """Delete a deployment with its config; a deployment that is already gone is no error."""

    def server_lost(self, deployment_id: str) -> bool:
        """Return whether a deployment's server existed at the last publication and no longer exists."""

    def published(self, server_id: str) -> Sequence[Mapping[str, Value]]:
        """Return the configs that a machine is to carry out, by their names."""

    def add_server(self, server_id: str) -> None:
        """Register a server; idempotent."""

    def has_server(self, server_id: str) -> bool:
        """Whether a machine is noted."""

    def remove_server(self, server_id: str) -> None:
        """Unregister a server: its open deployments are no longer waited for."""

    def credentials(self, thing_id: str) -> Credentials:
        """Return the credentials of a server's or a deployment's agent; the first call creates them."""

    def metadata_object(self, server_id: str) -> MetadataObject | None:
        """Return the object with the metadata of a server, None for other transports."""

    def set_metadata_object(self, server_id: str, place: MetadataObject | None) -> None:
        """Record the object with the metadata of a server."""

    def forget(self, thing_id: str) -> None:
        """Invalidate the credentials of a server or deployment."""


class _Unconnected:
    """No store: every call fails."""

    def __getattr__(self, name: str) -> Any:
        message = "The store of software configs cannot be reached from here."
        raise ProviderError(message, kind="Error")


UNCONNECTED: Final = cast(SoftwareStore, _Unconnected())


def id_of(token: str) -> str:
    """Return the id of the object created under a token; equal for every attempt."""
    return str(uuid.uuid5(_MADE_UNDER, token))


class ConfigNotFound(ProviderError):
    """A config that is referred to is not there."""

    def __init__(self, config_id: str) -> None:
        """Use Heat's message."""
        super().__init__(f"Software config with id {config_id} not found", kind="NotFound")
