"""The base classes of Octavia's types."""

from __future__ import annotations

import json
from typing import ClassVar, Final

from orchestrator.clients.openstack.networking.load_balancing import LoadBalancing
from orchestrator.resources.base import Context, Property, Value
from orchestrator.resources.openstack.collection_type import (
    UNORDERED,
    CollectionType,
    CreationMark,
    Field,
    Status,
    Verb,
)
from orchestrator.resources.openstack.connection import openstack
from orchestrator.resources.openstack.creation_marks import TokenInTags

NAME: Final = Property("string", "Name of the object. Default: the physical name.", update_allowed=True)
DESCRIPTION: Final = Property("string", "Description of the object.", default="", update_allowed=True)
ADMIN_STATE_UP: Final = Property(
    "boolean", "Whether the object is in operation.", default=True, update_allowed=True
)
POLL_SECONDS: Final = 2.0
PROVISIONING: Final = Status(
    "provisioning_status",
    ready=frozenset({"ACTIVE"}),
    pending=None,
    gone=frozenset({"DELETED"}),  # a deleted object may be shown for a while
    poll_seconds=POLL_SECONDS,
    reason="its status is {}",
)


def load_balancing(ctx: Context) -> LoadBalancing:
    """Return Octavia, called with the stack's credential."""
    return openstack(ctx).load_balancing


class LoadBalancerPart(CollectionType):
    """A load balancer or a part of it: a listener, a pool … It is built asynchronously. While the load
    balancer is being changed, requests are repeated.
    """

    service = "octavia"
    endpoint_type = "load-balancer"
    support_version = "10.0.0"
    common_fields = {"tags": UNORDERED}
    mark: ClassVar[CreationMark] = TokenInTags()
    status = PROVISIONING
    in_use: ClassVar[frozenset[Verb]] = frozenset({"create", "update", "delete"})
    is_listed = True


class Profile(CollectionType):
    """A flavor, an availability zone or a profile, which only administrators may use. It takes effect at once
    and has no tags: the object of a create request without an answer is found by its name and values.
    """

    service = "octavia"
    endpoint_type = "load-balancer"
    in_use: ClassVar[frozenset[Verb]] = frozenset({"update", "delete"})
    answers_create = True
    ends_at_once = True


def _same_json(before: Value, after: Value) -> bool:
    """Return whether two texts are equal: JSON is compared by its meaning."""
    return bool(_parsed(before) == _parsed(after))


def _parsed(value: Value) -> Value:
    try:
        return json.loads(value)
    except (TypeError, ValueError):
        return value


JSON_TEXT: Final = Field(equal=_same_json)
