"""What a type may know and ask of what is around its resource: where it is, its neighbours, access to it.

Types see these through `Context`; who reads and writes the rows behind them is
`operations/resource_context/stack_context.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol
from urllib.parse import quote


@dataclass(frozen=True, slots=True)
class Place:
    """Where a resource is: in whose stack, and at which address this API is reached."""

    project_id: str = ""
    stack_name: str = ""
    stack_id: str = ""  # as the API shows it
    resource: str = ""  # the logical name
    endpoint: str = ""  # http://host:port, without the version

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
        """Return where the resource is signalled natively, by who has a token."""
        stack = f"{quote(self.project_id, safe='')}/stacks/{quote(self.stack_name, safe='')}/{self.stack_id}"
        return f"{self.endpoint}/v1/{stack}/resources/{quote(self.resource, safe='')}/signal"


@dataclass(frozen=True, slots=True)
class Grant:
    """Access to a stack for whoever has the key or the token, or for a user; it ends with the resource.

    With a key of its own, or a token, one may signal the resource that made it and read its metadata. A key
    of a `user` may do what that user's policies allow.
    """

    key: str | None = None  # public
    secret: str | None = field(default=None, repr=False)  # what requests are signed with
    token: str | None = field(default=None, repr=False)
    user: str | None = None  # the user that is made, or the one whose key it is
    policies: tuple[str, ...] = ()  # names of access policies in the same stack, of a user that is made
    keystone_user: str | None = None  # the id of the resource's user at Keystone, whose tokens open it, too


@dataclass(frozen=True, slots=True)
class StackUser:
    """A resource's user at Keystone, and what it takes to sign in as them."""

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
        """Return the user of this resource, made when first asked for, and gone with the resource.

        Raises:
            ProviderError: Keystone does not let us.
            ProviderBusy: Keystone cannot be asked now.
        """

    def held(self) -> StackUser | None:
        """Return the user of this resource if it was made."""


@dataclass(frozen=True, slots=True)
class Peer:
    """A resource that this one requires directly, as it is now."""

    name: str
    type: str  # what carries it out
    properties: Mapping[str, Any]
    metadata: Mapping[str, Any]


class Peers(Protocol):
    """The resources that this one requires directly."""

    def find(self, reference_id: str, *, watch: bool = False) -> Peer | None:
        """Return the one with this reference id; with `watch`, this resource is looked at again from now on
        whenever that one has been signalled.
        """

    def forget(self) -> None:
        """Have those that are watched forget what they were told by signals, unless they go themselves."""


class _Nobody:
    """Stands where nobody is known."""

    def find(self, reference_id: str, *, watch: bool = False) -> Peer | None:
        return None

    def forget(self) -> None:
        """There is nobody to tell."""


NOBODY: Final[Peers] = _Nobody()
