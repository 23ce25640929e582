"""Declarations that Designate's types share."""

from __future__ import annotations

from typing import ClassVar, Final

from orchestrator.resources.base import Property
from orchestrator.resources.openstack.collection_type import CollectionType, Status
from orchestrator.schema.constraints import Length, Range

TTL: Final = Property(
    "integer", "Time to live in seconds.", update_allowed=True, constraints=(Range(1, 2147483647),)
)
DESCRIPTION: Final = Property("string", "Description.", update_allowed=True, constraints=(Length(max=160),))


class DesignateType(CollectionType):
    """An object of Designate, which answers before its name servers know a change. A zone has a unique name,
    a record set a unique name and type in its zone: they find the object of a create without an answer.
    """

    service = "designate"
    endpoint_type = "dns"
    support_version = "8.0.0"
    reports_fixed = True
    status: ClassVar[Status] = Status(
        "status",
        pending=frozenset({"PENDING"}),
        gone=frozenset({"DELETED"}),
        poll_seconds=3.0,
        reason="the status is {}",
        error='Went to status {} due to "Error in zone"',
    )
