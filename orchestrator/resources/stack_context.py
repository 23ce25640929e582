"""The surroundings of a resource as its type sees them: location, required resources, access, stack users.

Types reach these objects through `Context`. `operations/resource_context/stack_context.py` reads and writes
the rows behind them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol
from urllib.parse import quote

from orchestrator.json_types import JsonMapping
from orchestrator.template.environment import Environment


@dataclass(frozen=True, slots=True)
class StackLocation:
    """The stack of a resource, and the address of this API."""

    project_id: str = ""
    stack_name: str = ""
    stack_id: str = ""  # the public id
    resource: str = ""  # the logical name
    endpoint: str = ""  # http://host:port, without the version
    tree: str = ""  # the same for all stacks of a tree

    @property
    def stack_path(self) -> str:
        """Return `name/id` of the stack."""
        return f"{self.stack_name}/{self.stack_id}"

    @property
    def arn(self) -> str:
        """Return the resource's ARN, its parts quoted (docs/internals/rest-api.md §3)."""
        return (
            f"arn:openstack:heat::{quote(self.project_id, safe='')}:stacks/{quote(self.stack_name, safe='')}"
            f"/{self.stack_id}/resources/{quote(self.resource, safe='')}"
        )

    @property
    def signal_address(self) -> str:
        """Return the URL of the native signal request, which requires a token."""
        stack = f"{quote(self.project_id, safe='')}/stacks/{quote(self.stack_name, safe='')}/{self.stack_id}"
        return f"{self.endpoint}/v1/{stack}/resources/{quote(self.resource, safe='')}/signal"


@dataclass(frozen=True, slots=True)
class Grant:
    """Access to a stack for the holder of a key or a token, or for a user; revoked with the resource.

    The resource's own key or token permits signalling that resource and reading its metadata. A key of a
    `user` permits the actions that the user's policies allow.
    """

    key: str | None = None  # public
    secret: str | None = field(default=None, repr=False)  # signs requests
    token: str | None = field(default=None, repr=False)
    user: str | None = None  # the created user, or the owner of the key
    policies: tuple[str, ...] = ()  # for a created user: names of access policies in the same stack
    keystone_user: str | None = None  # id of the resource's user at Keystone, whose tokens are accepted too


@dataclass(frozen=True, slots=True)
class StackUser:
    """A resource's user at Keystone, with its credentials."""

    id: str
    name: str
    password: str = field(repr=False)
    project_id: str  # of the stack's users, not the stack's own
    domain_id: str
    auth_url: str
    region_name: str


class StackUsers(Protocol):
    """The users that resources have at Keystone."""

    def make(self) -> StackUser:
        """Return the user of this resource; the first call creates it. It is deleted with the resource.

        Raises:
            ProviderError: Keystone refuses to create it.
            ProviderBusy: Keystone is unreachable.
        """

    def held(self) -> StackUser | None:
        """Return the user of this resource if it was created."""


class StackContext(Protocol):
    """The desired state of the stack that contains a resource; read on demand."""

    def file(self, name: str) -> str | None:
        """Return the text of a file of the stack, None if it does not exist."""

    def files(self) -> Mapping[str, str]:
        """Return all files of the stack by name."""

    def environment(self, parameters: JsonMapping) -> Environment:
        """Return the environment of a stack nested in the resource: inherited entries and `parameters`."""


@dataclass(frozen=True, slots=True)
class RequiredResource:
    """The current state of a resource that the visited resource requires directly."""

    name: str
    type: str  # after resolving the environment's mapping
    properties: JsonMapping
    metadata: JsonMapping


class RequiredResources(Protocol):
    """The resources that the visited resource requires directly."""

    def find(self, reference_id: str, *, watch: bool = False) -> RequiredResource | None:
        """Return the resource with this reference id. With `watch`, every signal to it also triggers a check
        of the visited resource.
        """

    def forget(self) -> None:
        """Clear the signal data of watched resources, except those that are being replaced or deleted."""


class _NoRequiredResources:
    """No required resources."""

    def find(self, reference_id: str, *, watch: bool = False) -> RequiredResource | None:
        return None

    def forget(self) -> None:
        """Nothing to clear."""


NO_REQUIRED_RESOURCES: Final[RequiredResources] = _NoRequiredResources()
