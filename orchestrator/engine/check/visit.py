"""What one check knows: its node, the resource behind it, and what that resource requires. Nothing else.

Rows of the database become these as they are, thousands a second: hence named tuples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from orchestrator.engine.states import ACTS

Json = Mapping[str, Any]


class StackView(NamedTuple):
    """The stack as the check sees it, read after the claim was committed."""

    id: int
    uuid: str
    name: str
    project_id: str
    root_id: int
    traversal: int
    halted_traversal: int | None
    action: str
    status: str
    revision_id: int
    timeout_seconds: float | None
    converge: bool = False
    retain: bool = False  # what is there is to be left alone
    request_id: str | None = None  # of whoever asked for this traversal, for the log


class ResourceView(NamedTuple):
    """One incarnation, as stored."""

    id: int
    uuid: str
    name: str
    type: str
    action: str
    status: str
    physical_id: str | None
    reference_id: str | None
    properties: Json | None
    attributes: Json | None
    data: Json | None
    sealed: str | None
    attempt: int
    op: str | None
    op_seconds: float | None  # since the operation was opened
    lost_seconds: (
        float | None
    )  # until a worker that lost its lease can no longer be calling; negative when past
    requires: Sequence[int] = ()
    definition_id: int | None = None
    metadata: Json | None = None
    runs_as: str | None = None
    value_digest: str | None = None  # of what it handed on then
    input_digests: Sequence[str] = ()  # parallel to requires
    deposed: bool = False
    suspended: bool = False

    @property
    def never_created(self) -> bool:
        """Whether it failed before it was ever as wanted."""
        return self.status == "FAILED" and self.value_digest is None

    @property
    def kind(self) -> str:
        """Return the name of the type that carries it out."""
        return self.runs_as or self.type


class NodeData(NamedTuple):
    """What a requirement hands on: its ids and just the attributes asked for."""

    id: int
    name: str
    physical_id: str | None
    reference_id: str | None
    action: str
    status: str
    attributes: Json | None
    sealed: str | None
    value_digest: str | None = None


class DefinitionView(NamedTuple):
    """The snippet an update node builds from."""

    id: int
    body: Json
    digest: str
    requires: Sequence[str]
    dep_attrs: Json


class Visit(NamedTuple):
    """One claimed node with all it may know."""

    node_id: int
    kind: str
    traversal: int
    queue: str
    label: str
    retry_count: int
    lost_leases: int
    stack: StackView
    resource: ResourceView | None = None
    definition: DefinitionView | None = None
    inputs: tuple[NodeData, ...] = ()
    hooks: Sequence[str] = ()  # to pause at (engine/check/hooks.py)

    @property
    def act(self) -> str | None:
        """The action whose traversal visits what is there and brings it to no other template."""
        return self.stack.action if self.stack.action in ACTS else None

    def log_context(self) -> Mapping[str, object]:
        """Return what this visit is about, as lines of the log say it."""
        return {
            "stack": self.stack.uuid,
            "project": self.stack.project_id,
            "resource": None if self.resource is None else self.resource.name,
            "node": self.node_id,
            "traversal": self.traversal,
            "request_id": self.stack.request_id,
        }

    @property
    def superseded(self) -> bool:
        """Whether a newer traversal owns the stack."""
        return self.stack.traversal != self.traversal

    @property
    def halted(self) -> bool:
        """Whether this traversal has failed and is winding down."""
        return self.stack.halted_traversal == self.traversal


def replacement_visit(visit: Visit, uuid: str) -> Visit:
    """Return a visit to what takes a resource's place, as if it were there already, not begun.

    It goes by the id of the one that it replaces until it has one of its own.
    """
    replaced, definition = visit.resource, visit.definition
    assert replaced is not None
    assert definition is not None
    heir = ResourceView(
        id=replaced.id,
        uuid=uuid,
        name=replaced.name,
        type=definition.body["type"],
        action="INIT",
        status="COMPLETE",
        physical_id=None,
        reference_id=None,
        properties=None,
        attributes=None,
        data=None,
        sealed=None,
        attempt=0,
        op=None,
        op_seconds=None,
        lost_seconds=None,
        runs_as=definition.body.get("runs_as"),
    )
    return visit._replace(resource=heir, retry_count=0)
