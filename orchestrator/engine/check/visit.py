"""Input of a visit: its node, its resource, and the outputs of the resource's requirements.

These are built from database rows, thousands each second: hence named tuples. A visit combines a named tuple
of its fields with the behaviour of every visit: `NamedTuple` permits no other base class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from orchestrator.engine.observation.repairs import Mark
from orchestrator.engine.output_digests import is_early
from orchestrator.engine.states import ACTS
from orchestrator.json_types import JsonMapping


class StackView(NamedTuple):
    """The stack, read after the commit of the claim."""

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
    retain: bool = False  # existing resources are retained
    request_id: str | None = None  # of the API request for this traversal, for the log
    automatic: bool = False  # the traversal is an automatic repair


class ResourceView(NamedTuple):
    """A resource incarnation, as stored."""

    id: int
    uuid: str
    name: str
    type: str
    action: str
    status: str
    physical_id: str | None
    reference_id: str | None
    properties: JsonMapping | None
    attributes: JsonMapping | None
    data: JsonMapping | None
    sealed: str | None
    attempt: int
    op: str | None
    op_seconds: float | None  # since the operation was opened
    lost_seconds: (
        float | None
    )  # until the worker that lost its lease can send no more requests; negative if past
    requires: Sequence[int] = ()
    definition_id: int | None = None
    metadata: JsonMapping | None = None
    runs_as: str | None = None
    value_digest: str | None = None  # of its outputs
    input_digests: Sequence[str] = ()  # parallel to requires
    deposed: bool = False
    suspended: bool = False
    marked_unhealthy: bool = False  # by a user, who is not contradicted
    repair: JsonMapping | None = None  # a mark: the repair that the visit carries out
    reachable_seconds: float | None = None  # since the operation was opened, and since the last outage
    step: str | None = None  # of the open operation, started last
    requested_seconds: float | None = None  # since the delete of the open operation was answered
    # Of its object for a replacement: None, or taken back; False: requested; True: observed.
    released: bool | None = None

    @property
    def suspect(self) -> bool:
        """Whether an observation beside operations found that the object is to be repaired."""
        return self.repair is not None

    @property
    def mark(self) -> Mark | None:
        """Return the repair that the visit carries out."""
        return None if self.repair is None else Mark.of(self.repair)

    @property
    def never_created(self) -> bool:
        """Whether it has failed before it was ever complete."""
        return self.status == "FAILED" and (self.value_digest is None or is_early(self.value_digest))

    @property
    def resource_type(self) -> str:
        """Return the name of the type that manages it."""
        return self.runs_as or self.type


class NodeData(NamedTuple):
    """Outputs of a requirement: its ids, and only the used attributes."""

    id: int
    name: str
    physical_id: str | None
    reference_id: str | None
    action: str
    status: str
    attributes: JsonMapping | None
    sealed: str | None
    value_digest: str | None = None


class DefinitionView(NamedTuple):
    """The definition that an update node applies."""

    id: int
    body: JsonMapping
    digest: str
    requires: Sequence[str]
    dep_attrs: JsonMapping


class _NodeVisit:
    """Behaviour of every visit."""

    __slots__ = ()

    node_id: int
    traversal: int
    stack: StackView

    @property
    def resource_name(self) -> str | None:
        """The name of the visited resource, None without a resource."""
        return None

    @property
    def act(self) -> str | None:
        """The action of a traversal without a new template, otherwise None."""
        return self.stack.action if self.stack.action in ACTS else None

    @property
    def superseded(self) -> bool:
        """Whether a newer traversal owns the stack."""
        return self.stack.traversal != self.traversal

    @property
    def halted(self) -> bool:
        """Whether this traversal has failed or was cancelled, and is draining."""
        return self.stack.halted_traversal == self.traversal

    def log_context(self) -> Mapping[str, object]:
        """Return the ids that every log line of this visit carries."""
        return {
            "stack": self.stack.uuid,
            "project": self.stack.project_id,
            "resource": self.resource_name,
            "node": self.node_id,
            "traversal": self.traversal,
            "request_id": self.stack.request_id,
        }


class _ControlFields(NamedTuple):
    node_id: int
    kind: str
    traversal: int
    queue: str
    label: str
    retry_count: int
    lost_leases: int
    stack: StackView


class ControlVisit(_ControlFields, _NodeVisit):
    """A node without a resource: plan, join, finish, or a cleanup whose resource row was deleted."""

    __slots__ = ()


class _ResourceFields(NamedTuple):
    node_id: int
    kind: str
    traversal: int
    queue: str
    label: str
    retry_count: int
    lost_leases: int
    stack: StackView
    resource: ResourceView
    definition: DefinitionView | None = None
    inputs: tuple[NodeData, ...] = ()
    hooks: Sequence[str] = ()  # applicable hooks and restrictions (engine/check/hooks.py)
    unreachable_tries: int = 0  # attempts in a row during an outage of the provider
    waiting_seconds: float | None = None  # since the first wait of this node
    early_pending: bool | None = None  # early dependents are not released yet; None: it has none
    early_released: bool | None = None  # early dependents were released
    absent: bool = False  # after an outage the last visit observed that an object does not exist
    # Kind of refusal -> its first time, and `now`: in seconds, by the database's clock.
    refused_since: Mapping[str, float] | None = None
    refusal: str | None = None  # the kind of the last attempt's
    credential_id: int | None = None  # that the visit calls the cloud with
    # Read with a claim only:
    others_hold: bool = True  # other incarnations may hold what this one needs


class ResourceVisit(_ResourceFields, _NodeVisit):
    """A node of a resource, with the input of its visit."""

    __slots__ = ()

    @property
    def resource_name(self) -> str:
        """The name of the visited resource."""
        return self.resource.name

    @property
    def waited_seconds(self) -> float:
        """The seconds since the first wait of this node, or since the end of an outage after it."""
        return 0.0 if self.unreachable_tries else self.waiting_seconds or 0.0

    @property
    def refused_seconds(self) -> Mapping[str, float]:
        """The seconds since the first refusal of each kind."""
        since = self.refused_since
        return {} if since is None else {kind: since["now"] - first for kind, first in since.items()}


Visit = ResourceVisit | ControlVisit


def replacement_visit(visit: ResourceVisit, uuid: str) -> ResourceVisit:
    """Return a visit to the replacement of a resource, before its row exists.

    Until then it has the id of the replaced resource.
    """
    replaced, definition = visit.resource, visit.definition
    assert definition is not None
    replacement = ResourceView(
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
    return visit._replace(resource=replacement, retry_count=0)


def demands_copy(visit: ResourceVisit) -> bool:
    """Whether the deletion policy demands a copy before the delete. Incomplete objects need none."""
    if visit.kind != "cleanup" or visit.definition is None:
        return False
    digest = visit.resource.value_digest
    complete = digest is not None and not is_early(digest)
    return complete and str(visit.definition.body.get("deletion_policy")).capitalize() == "Snapshot"
