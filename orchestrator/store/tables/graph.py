"""Tables of resources and of the graph: definitions, incarnations, pending visits, failures, orphans.

`enqueued_at` and `re_enqueues` are the time and the number of a node's *check messages*.
"""

from __future__ import annotations

import datetime as dt
import uuid as uuid_

from sqlalchemy import CheckConstraint, Identity, Index, SmallInteger, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from orchestrator.engine.states import RESOURCE_KINDS, STATES_AT_WORK
from orchestrator.json_types import JsonObject
from orchestrator.store.tables.base import AGGRESSIVE_AUTOVACUUM, Base, EnumText, check_in, now


class ResourceDefinition(Base):
    """The snippet of a resource as written, valid from a revision number up to, not including, another."""

    __tablename__ = "resource_definition"

    id: Mapped[int] = mapped_column(Identity(), primary_key=True)
    stack_id: Mapped[int]
    name: Mapped[str]
    digest: Mapped[bytes]  # of the snippet and of every parameter value and file that it uses
    body: Mapped[JsonObject]
    requires: Mapped[list[str]] = mapped_column(server_default=text("'{}'"))
    dep_attrs: Mapped[JsonObject] = mapped_column(
        JSONB, server_default=text("'{}'")
    )  # required name -> names of the attributes used
    valid_from: Mapped[int]
    valid_to: Mapped[int | None]

    __table_args__ = (
        UniqueConstraint("stack_id", "name", "valid_from"),
        CheckConstraint("valid_to > valid_from", name="valid_range"),
        Index(
            "ix_resource_definition_closed",
            "stack_id",
            "valid_to",
            postgresql_where=text("valid_to IS NOT NULL"),
        ),
    )


class Resource(Base):
    """An incarnation of a resource. `lease` is the right to operate on it; `op` is open until its end was
    observed.
    """

    __tablename__ = "resource"

    id: Mapped[int] = mapped_column(Identity(), primary_key=True)
    uuid: Mapped[uuid_.UUID]
    stack_id: Mapped[int]
    name: Mapped[str]
    type: Mapped[str]  # as in the template
    runs_as: Mapped[str | None]  # the type that the environment maps it to
    definition_id: Mapped[int | None]  # it was last built from
    physical_id: Mapped[str | None]
    reference_id: Mapped[str | None]  # the value of get_resource, if it is not the physical id
    action: Mapped[str] = mapped_column(EnumText("resource_action"), server_default="INIT")
    status: Mapped[str] = mapped_column(EnumText("resource_status"), server_default="COMPLETE")
    status_reason: Mapped[str] = mapped_column(server_default="state changed")
    properties: Mapped[JsonObject | None]  # resolved; it was built with these
    attributes: Mapped[JsonObject | None]
    metadata_: Mapped[JsonObject | None] = mapped_column("metadata")
    data: Mapped[JsonObject | None]  # private to the type
    sealed: Mapped[bytes | None]  # the last four and reference_id, encrypted, when any of it is secret
    attempt: Mapped[int] = mapped_column(server_default=text("0"))
    op: Mapped[str | None] = mapped_column(EnumText("resource_op"))
    op_started_at: Mapped[dt.datetime | None]
    step: Mapped[str | None]  # of the open operation, started last
    requested_at: Mapped[dt.datetime | None]  # the delete of the open operation was answered last
    lost_at: Mapped[dt.datetime | None]  # until then, a request without a known answer was sent
    lease: Mapped[int | None]
    leased_until: Mapped[dt.datetime | None]
    requires: Mapped[list[int]] = mapped_column(server_default=text("'{}'"))
    input_digests: Mapped[list[str]] = mapped_column(server_default=text("'{}'"))  # parallel to requires
    built_digest: Mapped[bytes | None]
    value_digest: Mapped[str | None]  # of its outputs: the reference id and the attributes
    replaces: Mapped[int | None]
    replaced_by: Mapped[int | None]
    deposed: Mapped[bool] = mapped_column(server_default=text("false"))  # deposed: a pending delete
    released: Mapped[bool | None]  # false: the release for a replacement may have begun; true: it has ended
    suspended: Mapped[bool] = mapped_column(server_default=text("false"))
    marked_unhealthy: Mapped[bool] = mapped_column(server_default=text("false"))  # by a user
    observed: Mapped[str | None]  # the last observation: ready or failed; by a pass also absent, error, ...
    observed_at: Mapped[dt.datetime | None]
    observed_reason: Mapped[str | None]  # of a verdict of an observation pass
    repair: Mapped[JsonObject | None] = mapped_column(JSONB)  # that the next visit carries out: `Mark`
    unreachable_since: Mapped[dt.datetime | None]  # the first failed observation after the last success
    unreachable_reason: Mapped[str | None]
    reachable_since: Mapped[dt.datetime | None]  # the end of the last outage during an operation
    created_at: Mapped[dt.datetime] = mapped_column(server_default=now)
    updated_at: Mapped[dt.datetime | None]

    __table_args__ = (
        CheckConstraint("(lease IS NULL) = (leased_until IS NULL)", name="lease_has_an_end"),
        CheckConstraint("(op IS NULL) = (op_started_at IS NULL)", name="op_has_a_start"),
        CheckConstraint("op IS NULL OR attempt > 0", name="op_has_a_token"),
        CheckConstraint("action <> 'INIT' OR status = 'COMPLETE'", name="init_is_complete"),
        CheckConstraint("cardinality(requires) = cardinality(input_digests)", name="digest_per_requirement"),
        CheckConstraint(
            "sealed IS NULL OR coalesce(properties, attributes, data) IS NULL", name="sealed_or_plain"
        ),
        CheckConstraint("(observed IS NULL) = (observed_at IS NULL)", name="observed_has_a_time"),
        Index("ix_resource_stack_name", "stack_id", "name"),
        Index("ix_resource_deposed", "stack_id", postgresql_where=text("deposed")),
        Index("ix_resource_op", "stack_id", postgresql_where=text("op IS NOT NULL")),
        # Of the hash: an id may be longer than a row of an index.
        Index(
            "ix_resource_physical_id",
            text("hashtextextended(physical_id, 0)"),
            postgresql_where=text("physical_id IS NOT NULL"),
        ),
        {"postgresql_with": {"fillfactor": "60", **AGGRESSIVE_AUTOVACUUM}},
    )


class LargeValue(Base):
    """The size of a large value of a resource: properties and metadata, or attributes."""

    __tablename__ = "large_value"

    resource_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    part: Mapped[str] = mapped_column(primary_key=True)  # definition, attributes
    root_id: Mapped[int]
    project_id: Mapped[str]
    bytes: Mapped[int]

    __table_args__ = (Index("ix_large_value_project", "project_id"),)


class GraphNode(Base):
    """A pending visit of a traversal. All states and moves are in `engine/states.py`."""

    __tablename__ = "graph_node"

    id: Mapped[int] = mapped_column(Identity(), primary_key=True)
    stack_id: Mapped[int]
    root_id: Mapped[int]
    traversal: Mapped[int]
    kind: Mapped[str] = mapped_column(EnumText("node_kind"))
    resource_id: Mapped[int | None]
    definition_id: Mapped[int | None]  # an update node builds from it
    queue: Mapped[str]
    label: Mapped[str]  # for display: the resource's name
    needed_by: Mapped[list[int]] = mapped_column(server_default=text("'{}'"))
    early_needed_by: Mapped[list[int] | None]  # among `needed_by` at first: released when the object exists
    blocked_by: Mapped[int] = mapped_column(server_default=text("0"))
    dirty: Mapped[bool] = mapped_column(server_default=text("true"))
    hooks: Mapped[list[str]] = mapped_column(server_default=text("'{}'"))  # in state paused: at the first
    state: Mapped[str] = mapped_column(EnumText("node_state"))
    observed_ready: Mapped[bool] = mapped_column(server_default=text("false"))
    observed_ready_at: Mapped[dt.datetime | None]
    retry_count: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))
    lost_leases: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))
    unreachable_tries: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))  # in a row
    refusal: Mapped[str | None]  # the kind of the last attempt's refusal (engine/check/refusals.py)
    refused_since: Mapped[JsonObject | None] = mapped_column(JSONB)  # kind -> time of its first refusal
    absent: Mapped[bool] = mapped_column(server_default=text("false"))  # observed once after an outage
    due_at: Mapped[dt.datetime | None]
    enqueued_at: Mapped[dt.datetime | None]
    re_enqueues: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))
    waiting_since: Mapped[dt.datetime | None]
    lease: Mapped[int | None]
    leased_until: Mapped[dt.datetime | None]
    last_error: Mapped[str | None]

    __table_args__ = (
        CheckConstraint("observed_ready = (observed_ready_at IS NOT NULL)", name="ready_has_a_time"),
        CheckConstraint("observed_ready = (state = 'ready')", name="ready_is_a_state"),
        CheckConstraint("blocked_by >= 0", name="blocked_by_counts"),
        CheckConstraint("(state = 'blocked') = (blocked_by > 0)", name="blocked_is_counted"),
        CheckConstraint("(state = 'waiting') = (due_at IS NOT NULL)", name="waiting_has_an_end"),
        CheckConstraint("(state = 'checking') = (lease IS NOT NULL)", name="checking_has_a_lease"),
        CheckConstraint("(lease IS NULL) = (leased_until IS NULL)", name="lease_has_an_end"),
        CheckConstraint(
            f"({check_in('kind', RESOURCE_KINDS)}) = (resource_id IS NOT NULL)", name="visits_a_resource"
        ),
        CheckConstraint("enqueued_at IS NULL OR state <> 'blocked'", name="blocked_is_not_enqueued"),
        Index("ix_graph_node_visit", "stack_id", "traversal", "kind", "resource_id"),
        Index("ix_graph_node_queued", "root_id", "enqueued_at", postgresql_where=text("state = 'queued'")),
        Index("ix_graph_node_due", "due_at", postgresql_where=text("state = 'waiting'")),
        Index("ix_graph_node_leased", "leased_until", postgresql_where=text("state = 'checking'")),
        Index(
            "ix_graph_node_at_work",
            "stack_id",
            "resource_id",
            postgresql_where=text(f"{check_in('state', STATES_AT_WORK)}"),
        ),
        {"postgresql_with": {"fillfactor": "70", **AGGRESSIVE_AUTOVACUUM}},
    )


class Failure(Base):
    """A cause of a traversal's failure; a stack's reason is built from these."""

    __tablename__ = "failure"

    stack_id: Mapped[int] = mapped_column(primary_key=True)
    traversal: Mapped[int] = mapped_column(primary_key=True)
    id: Mapped[int] = mapped_column(Identity(), primary_key=True)
    resource_name: Mapped[str]
    reason: Mapped[str]
    created_at: Mapped[dt.datetime] = mapped_column(server_default=now)
    resource_type: Mapped[str | None]  # null, as the next columns, in rows of older versions
    physical_id: Mapped[str | None]
    action: Mapped[str | None]  # the failed action of the resource
    attempts: Mapped[int | None] = mapped_column(SmallInteger)


class Orphan(Base):
    """An orphan: an object that was created under a lost lease, which the next holder of the lease checks; or
    a duplicate, which is deleted. Or a search for objects that a repeated create may have left.
    """

    __tablename__ = "orphan"

    id: Mapped[int] = mapped_column(Identity(), primary_key=True)
    stack_id: Mapped[int]
    resource_id: Mapped[int]
    token: Mapped[str]
    type: Mapped[str]
    physical_id: Mapped[str]
    created_at: Mapped[dt.datetime] = mapped_column(server_default=now)
    handled_at: Mapped[dt.datetime | None]
    requested_at: Mapped[dt.datetime | None]  # the delete was answered last
    # Of a search for objects that may still arrive: `physical_id` is "".
    physical_name: Mapped[str] = mapped_column(server_default="")
    search_until: Mapped[dt.datetime | None]
    search_due_at: Mapped[dt.datetime | None]

    __table_args__ = (
        Index("ix_orphan_open", "resource_id", postgresql_where=text("handled_at IS NULL")),
        Index("ix_orphan_handled", "handled_at", postgresql_where=text("handled_at IS NOT NULL")),
    )


class LateRequest(Base):
    """A resource with requests that had no answer, or whose worker lost its lease: they may still be carried
    out, after newer ones. Its object is observed until then (operations/adr/0025).
    """

    __tablename__ = "late_request"

    resource_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    lost_at: Mapped[dt.datetime] = mapped_column(server_default=now)  # when the last of them was recorded
    until: Mapped[dt.datetime]  # no request is carried out later
    due_at: Mapped[dt.datetime]  # of the next observation
    pauses: Mapped[bool] = mapped_column(server_default=text("false"))  # a suspend or a resume is among them
    marked: Mapped[bool] = mapped_column(server_default=text("false"))  # for the next correction

    __table_args__ = (Index("ix_late_request_due", "due_at"),)


class ObservationPass(Base):
    """A pass that observes the resources of a stack beside its operations. It ends when every resource up to
    the last name is observed, and its row is deleted then.
    """

    __tablename__ = "observation_pass"

    stack_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    requested_at: Mapped[dt.datetime] = mapped_column(server_default=now)
    after_name: Mapped[str] = mapped_column(server_default="")  # with `after_id`: the last resource selected
    after_id: Mapped[int] = mapped_column(server_default=text("0"))
    exhausted: Mapped[bool] = mapped_column(server_default=text("false"))  # all resources were selected
    due_at: Mapped[dt.datetime] = mapped_column(server_default=now)  # when the sweep continues it
    credential_id: Mapped[int | None]  # of the caller; null: the revision's

    __table_args__ = (Index("ix_observation_pass_due", "due_at"),)


class Observation(Base):
    """A resource that an observation pass has selected and still has to observe."""

    __tablename__ = "observation"

    resource_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    stack_id: Mapped[int]
    due_at: Mapped[dt.datetime] = mapped_column(server_default=now)  # when the sweep sends its message
    tries: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))

    __table_args__ = (Index("ix_observation_due", "due_at"), Index("ix_observation_stack", "stack_id"))
