"""The tables (docs/internals/design.md "Data", docs/internals/protocol.md "Rows"): what each holds and what
can never be written into it.

The tables with a row per resource or event have no foreign key to the stack: checking one locks the stack's
row, and every check of a stack would queue for it (invariant 7). `operations/maintenance/purge.py` removes
what a stack leaves.

Declarations only. The statements that change state are in `nodes/repository.py` and
`traversals/traversals.py`; `stacks/` and `events/` read for the API. A change here needs a migration in
`alembic/`, and a test compares the two.
"""

from __future__ import annotations

import datetime as dt
import uuid as uuid_

from sqlalchemy import (
    CheckConstraint,
    Float,
    ForeignKey,
    Identity,
    Index,
    SmallInteger,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from orchestrator.engine.states import OUTCOMES, STACK_ACTIONS, STATUSES
from orchestrator.store.tables.base import AGGRESSIVE_AUTOVACUUM, Base, EnumText, Json, Xid8, check_in, now


class Content(Base):
    """Templates and files, stored once, by the SHA-256 of their bytes."""

    __tablename__ = "content"

    hash: Mapped[bytes] = mapped_column(primary_key=True)
    body: Mapped[bytes]
    created_at: Mapped[dt.datetime] = mapped_column(server_default=now)

    __table_args__ = (CheckConstraint("length(hash) = 32", name="hash_is_sha256"),)


class Stack(Base):
    """One stack; `traversal` only grows and is its version."""

    __tablename__ = "stack"

    id: Mapped[int] = mapped_column(Identity(), primary_key=True)
    uuid: Mapped[uuid_.UUID] = mapped_column(unique=True)
    project_id: Mapped[str]
    name: Mapped[str]
    owner_id: Mapped[int | None] = mapped_column(ForeignKey("stack.id"))
    parent_resource_id: Mapped[int | None] = mapped_column(unique=True)  # one child per resource row
    parent_resource: Mapped[str | None]
    root_id: Mapped[int]
    depth: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))
    action: Mapped[str]
    status: Mapped[str]
    status_reason: Mapped[str] = mapped_column(server_default="")
    traversal: Mapped[int] = mapped_column(server_default=text("0"))
    halted_traversal: Mapped[int | None]  # set once, by the first failure of that traversal
    revision_id: Mapped[int | None]  # the desired one
    good_revision_id: Mapped[int | None]  # the last that was COMPLETE
    disable_rollback: Mapped[bool] = mapped_column(server_default=text("true"))
    timeout_mins: Mapped[int | None]
    tags: Mapped[list[str]] = mapped_column(server_default=text("'{}'"))
    delete_on_failure: Mapped[bool] = mapped_column(
        server_default=text("false")
    )  # a create that fails is deleted, not rolled back
    convergence_policy: Mapped[str] = mapped_column(server_default="report")
    keep_going: Mapped[bool] = mapped_column(
        server_default=text("false")
    )  # a failure stops what needs it only
    converge: Mapped[bool] = mapped_column(
        server_default=text("false")
    )  # this traversal looks before it compares
    retain: Mapped[bool] = mapped_column(
        server_default=text("false")
    )  # this traversal leaves all things alone
    credentials: Mapped[bytes | None]  # encrypted
    username: Mapped[str] = mapped_column(server_default="")
    user_project_id: Mapped[str | None]
    created_at: Mapped[dt.datetime] = mapped_column(server_default=now)
    updated_at: Mapped[dt.datetime | None]  # when the last action other than create was requested
    action_started_at: Mapped[dt.datetime] = mapped_column(server_default=now)
    deleted_at: Mapped[dt.datetime | None]
    request_id: Mapped[str | None]  # of whoever asked for this traversal: for the log alone

    __table_args__ = (
        CheckConstraint(check_in("action", STACK_ACTIONS), name="action_known"),
        CheckConstraint(check_in("status", STATUSES), name="status_known"),
        CheckConstraint("halted_traversal <= traversal", name="halted_is_past"),
        CheckConstraint("(owner_id IS NULL) = (depth = 0)", name="root_has_no_owner"),
        CheckConstraint("(owner_id IS NULL) = (root_id = id)", name="root_is_its_own"),
        CheckConstraint(
            "(deleted_at IS NOT NULL) = (action = 'DELETE' AND status = 'COMPLETE')",
            name="deleted_is_complete",
        ),
        CheckConstraint(check_in("convergence_policy", ("off", "report", "heal")), name="policy_known"),
        Index(
            "uq_stack_live_name",
            "project_id",
            "name",
            unique=True,
            postgresql_where=text("deleted_at IS NULL AND owner_id IS NULL"),
        ),
        Index(
            "ix_stack_nested_name",
            "project_id",
            "name",
            postgresql_where=text("deleted_at IS NULL AND owner_id IS NOT NULL"),
        ),
        Index(
            "ix_stack_user_project",
            "user_project_id",
            "name",
            postgresql_where=text("deleted_at IS NULL AND user_project_id IS NOT NULL"),
        ),
        Index("ix_stack_project_created", "project_id", "created_at", "id"),
        Index("ix_stack_root", "root_id"),
        Index("ix_stack_owner", "owner_id", postgresql_where=text("owner_id IS NOT NULL")),
        Index("ix_stack_in_progress", "action_started_at", postgresql_where=text("status = 'IN_PROGRESS'")),
        Index("ix_stack_deleted", "deleted_at", postgresql_where=text("deleted_at IS NOT NULL")),
    )


class Revision(Base):
    """One template with its environment, files and parameters, as once asked for; never changed afterwards.

    `outline` is what answers need without reading the template: version, description, parameter schemas,
    outputs.
    `sealed` holds hidden parameter values, encrypted; their names stay in `parameters` with a null.
    """

    __tablename__ = "revision"

    id: Mapped[int] = mapped_column(Identity(), primary_key=True)
    stack_id: Mapped[int] = mapped_column(ForeignKey("stack.id", ondelete="CASCADE"))
    number: Mapped[int]
    action: Mapped[str]
    template_hash: Mapped[bytes] = mapped_column(ForeignKey("content.hash"))
    environment: Mapped[Json] = mapped_column(server_default=text("'{}'"))
    files: Mapped[Json] = mapped_column(JSONB, server_default=text("'{}'"))  # name -> hex hash
    parameters: Mapped[Json] = mapped_column(server_default=text("'{}'"))  # name -> converted value
    sealed: Mapped[bytes | None]
    outline: Mapped[Json]
    adopted: Mapped[bytes | None]  # of an ADOPT: name -> what is there already, encrypted
    restores: Mapped[int | None]  # of a RESTORE: the snapshot; it may be gone by now
    traversal: Mapped[int | None]  # that brings the stack to it
    first_event: Mapped[int | None]  # that tells of its beginning
    outcome: Mapped[str | None]
    ended_at: Mapped[dt.datetime | None]
    copy_of: Mapped[int | None]  # the number of the revision whose template a rollback took
    created_by: Mapped[str] = mapped_column(server_default="")
    created_at: Mapped[dt.datetime] = mapped_column(server_default=now)

    __table_args__ = (
        UniqueConstraint("stack_id", "number"),
        CheckConstraint(check_in("outcome", OUTCOMES), name="outcome_known"),
        CheckConstraint("(outcome IS NULL) = (ended_at IS NULL)", name="outcome_has_a_time"),
        CheckConstraint("outcome IS NULL OR traversal IS NOT NULL", name="outcome_of_a_traversal"),
        CheckConstraint(check_in("action", STACK_ACTIONS), name="action_known"),
        Index("ix_revision_template_hash", "template_hash"),
        Index("ix_revision_open", "stack_id", postgresql_where=text("outcome IS NULL")),
        Index(
            "ix_revision_file_hashes",  # which revisions name a file, for the purge
            text("jsonb_path_query_array(files, '$.*')"),
            postgresql_using="gin",
            postgresql_with={"fastupdate": "off"},
        ),
    )


class ResourceDefinition(Base):
    """One resource's snippet as written, valid from one revision number to before another."""

    __tablename__ = "resource_definition"

    id: Mapped[int] = mapped_column(Identity(), primary_key=True)
    stack_id: Mapped[int]
    name: Mapped[str]
    digest: Mapped[bytes]  # of the snippet and every parameter value and file it uses
    body: Mapped[Json]
    requires: Mapped[list[str]] = mapped_column(server_default=text("'{}'"))
    dep_attrs: Mapped[Json] = mapped_column(
        JSONB, server_default=text("'{}'")
    )  # required name -> attribute names it uses
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
    """One incarnation of a resource. `lease` is the right to operate on it; `op` is open until its end was
    observed.
    """

    __tablename__ = "resource"

    id: Mapped[int] = mapped_column(Identity(), primary_key=True)
    uuid: Mapped[uuid_.UUID]
    stack_id: Mapped[int]
    name: Mapped[str]
    type: Mapped[str]  # as written
    runs_as: Mapped[str | None]  # the type that the environment puts in its place
    definition_id: Mapped[int | None]  # what it was last built from
    physical_id: Mapped[str | None]
    reference_id: Mapped[str | None]  # what get_resource gives, when it is not the physical id
    action: Mapped[str] = mapped_column(EnumText("resource_action"), server_default="INIT")
    status: Mapped[str] = mapped_column(EnumText("resource_status"), server_default="COMPLETE")
    status_reason: Mapped[str] = mapped_column(server_default="state changed")
    properties: Mapped[Json | None]  # resolved, as it was built with
    attributes: Mapped[Json | None]
    metadata_: Mapped[Json | None] = mapped_column("metadata")
    data: Mapped[Json | None]  # the type's own notes
    sealed: Mapped[bytes | None]  # the last four and reference_id, encrypted, when any of it is secret
    attempt: Mapped[int] = mapped_column(server_default=text("0"))
    op: Mapped[str | None] = mapped_column(EnumText("resource_op"))
    op_started_at: Mapped[dt.datetime | None]
    lost_at: Mapped[dt.datetime | None]  # until when a worker that lost its lease may still have been calling
    lease: Mapped[int | None]
    leased_until: Mapped[dt.datetime | None]
    requires: Mapped[list[int]] = mapped_column(server_default=text("'{}'"))
    input_digests: Mapped[list[str]] = mapped_column(server_default=text("'{}'"))  # parallel to requires
    built_digest: Mapped[bytes | None]
    value_digest: Mapped[str | None]  # of what it hands on: its reference id and attributes
    replaces: Mapped[int | None]
    replaced_by: Mapped[int | None]
    leftover: Mapped[bool] = mapped_column(server_default=text("false"))  # no template has it: it is to go
    suspended: Mapped[bool] = mapped_column(server_default=text("false"))
    observed: Mapped[str | None]
    observed_at: Mapped[dt.datetime | None]
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
        Index("ix_resource_leftover", "stack_id", postgresql_where=text("leftover")),
        Index("ix_resource_op", "stack_id", postgresql_where=text("op IS NOT NULL")),
        {"postgresql_with": {"fillfactor": "60", **AGGRESSIVE_AUTOVACUUM}},
    )


class GraphNode(Base):
    """One visit a traversal owes. Every state and move is in `engine/states.py`."""

    __tablename__ = "graph_node"

    id: Mapped[int] = mapped_column(Identity(), primary_key=True)
    stack_id: Mapped[int]
    root_id: Mapped[int]
    traversal: Mapped[int]
    kind: Mapped[str] = mapped_column(EnumText("node_kind"))
    resource_id: Mapped[int | None]
    definition_id: Mapped[int | None]  # what an update node builds from
    queue: Mapped[str]
    label: Mapped[str]  # for people: the resource's name
    needed_by: Mapped[list[int]] = mapped_column(server_default=text("'{}'"))
    blocked_by: Mapped[int] = mapped_column(server_default=text("0"))
    dirty: Mapped[bool] = mapped_column(server_default=text("true"))
    hooks: Mapped[list[str]] = mapped_column(server_default=text("'{}'"))  # to pause at; paused: at the first
    state: Mapped[str] = mapped_column(EnumText("node_state"))
    observed_ready: Mapped[bool] = mapped_column(server_default=text("false"))
    observed_ready_at: Mapped[dt.datetime | None]
    retry_count: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))
    lost_leases: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))
    due_at: Mapped[dt.datetime | None]
    rung_at: Mapped[dt.datetime | None]
    rings: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))
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
            "(kind IN ('update', 'cleanup')) = (resource_id IS NOT NULL)", name="visits_a_resource"
        ),
        CheckConstraint("rung_at IS NULL OR state <> 'blocked'", name="blocked_is_not_rung"),
        Index("ix_graph_node_visit", "stack_id", "traversal", "kind", "resource_id"),
        Index("ix_graph_node_queued", "root_id", "rung_at", postgresql_where=text("state = 'queued'")),
        Index("ix_graph_node_due", "due_at", postgresql_where=text("state = 'waiting'")),
        Index("ix_graph_node_leased", "leased_until", postgresql_where=text("state = 'checking'")),
        Index(
            "ix_graph_node_at_work",
            "stack_id",
            "resource_id",
            postgresql_where=text("state IN ('checking', 'waiting', 'paused')"),
        ),
        {"postgresql_with": {"fillfactor": "70", **AGGRESSIVE_AUTOVACUUM}},
    )


class Event(Base):
    """What changed and why, in order. Its public uuid is made of the stack's and `id`
    (store/events/events.py).
    """

    __tablename__ = "event"

    stack_id: Mapped[int] = mapped_column(primary_key=True)
    id: Mapped[int] = mapped_column(Identity(), primary_key=True)
    xid: Mapped[int] = mapped_column(Xid8, server_default=text("pg_current_xact_id()"))
    resource_name: Mapped[str]
    resource_type: Mapped[str]
    physical_id: Mapped[str | None]
    action: Mapped[str]
    status: Mapped[str]
    reason: Mapped[str]
    properties: Mapped[Json | None]
    created_at: Mapped[dt.datetime] = mapped_column(server_default=text("clock_timestamp()"))

    __table_args__ = (
        Index("ix_event_order", "stack_id", "xid", "id"),
        Index("ix_event_xid", "xid"),  # of all stacks, for who follows more than one tree
        {"postgresql_with": AGGRESSIVE_AUTOVACUUM},
    )


class Failure(Base):
    """One cause of a traversal's failure; a stack's reason is made of them."""

    __tablename__ = "failure"

    stack_id: Mapped[int] = mapped_column(primary_key=True)
    traversal: Mapped[int] = mapped_column(primary_key=True)
    id: Mapped[int] = mapped_column(Identity(), primary_key=True)
    resource_name: Mapped[str]
    reason: Mapped[str]
    created_at: Mapped[dt.datetime] = mapped_column(server_default=now)
    resource_type: Mapped[str | None]  # null, like what follows: written before it was kept
    physical_id: Mapped[str | None]
    action: Mapped[str | None]  # that failed, the resource's own
    attempts: Mapped[int | None] = mapped_column(SmallInteger)


class Stray(Base):
    """Something made under a token whose worker had lost its lease: to be looked at by the next holder, and
    removed if doubled.
    """

    __tablename__ = "stray"

    id: Mapped[int] = mapped_column(Identity(), primary_key=True)
    stack_id: Mapped[int]
    resource_id: Mapped[int]
    token: Mapped[str]
    type: Mapped[str]
    physical_id: Mapped[str]
    created_at: Mapped[dt.datetime] = mapped_column(server_default=now)
    handled_at: Mapped[dt.datetime | None]

    __table_args__ = (
        Index("ix_stray_open", "resource_id", postgresql_where=text("handled_at IS NULL")),
        Index("ix_stray_handled", "handled_at", postgresql_where=text("handled_at IS NOT NULL")),
    )


class Snapshot(Base):
    """What a stack was at one moment: the revision, and a row for each of its resources."""

    __tablename__ = "snapshot"

    id: Mapped[int] = mapped_column(Identity(), primary_key=True)
    uuid: Mapped[uuid_.UUID] = mapped_column(unique=True)
    stack_id: Mapped[int] = mapped_column(ForeignKey("stack.id", ondelete="CASCADE"))
    name: Mapped[str | None]
    action: Mapped[str] = mapped_column(server_default="CREATE")  # or DELETE: it and its copies are to go
    status: Mapped[str]
    status_reason: Mapped[str]
    traversal: Mapped[int]
    revision_id: Mapped[int] = mapped_column(ForeignKey("revision.id", ondelete="CASCADE"))
    created_at: Mapped[dt.datetime] = mapped_column(server_default=now)
    due_at: Mapped[dt.datetime | None]  # of a DELETE: when to go on with it
    tries: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))

    __table_args__ = (
        CheckConstraint(check_in("action", ("CREATE", "DELETE")), name="action_known"),
        CheckConstraint(check_in("status", STATUSES), name="status_known"),
        CheckConstraint("(action = 'DELETE') = (due_at IS NOT NULL)", name="delete_is_due"),
        Index("ix_snapshot_stack", "stack_id", "created_at"),
        Index("ix_snapshot_due", "due_at", postgresql_where=text("due_at IS NOT NULL")),
        Index("ix_snapshot_revision_id", "revision_id"),
    )


class ResourceSnapshot(Base):
    """One resource as a snapshot has it; `kept` is what its type needs to make it again, encrypted."""

    __tablename__ = "resource_snapshot"

    id: Mapped[int] = mapped_column(Identity(), primary_key=True)
    snapshot_id: Mapped[int] = mapped_column(ForeignKey("snapshot.id", ondelete="CASCADE"))
    name: Mapped[str]
    type: Mapped[str]
    runs_as: Mapped[str | None]
    token: Mapped[str]  # with which the copy was asked for
    physical_id: Mapped[str | None]
    action: Mapped[str]
    status: Mapped[str]
    metadata_: Mapped[Json | None] = mapped_column("metadata")
    data: Mapped[Json | None]
    sealed: Mapped[bytes | None]  # the last two, encrypted, when any of it is secret
    kept: Mapped[bytes | None]

    __table_args__ = (
        UniqueConstraint("snapshot_id", "name"),
        CheckConstraint("sealed IS NULL OR coalesce(metadata, data) IS NULL", name="sealed_or_plain"),
    )


class Signal(Base):
    """A signal that was accepted and is to be taken in by its resource, in the order they came; then it
    goes.
    """

    __tablename__ = "signal"

    id: Mapped[int] = mapped_column(Identity(), primary_key=True)
    stack_id: Mapped[int]
    resource_id: Mapped[int]
    details: Mapped[bytes]  # JSON, encrypted
    about: Mapped[
        str | None
    ]  # null: somebody sent it; else what the engine tells it (store/signals/watchers.py)
    created_at: Mapped[dt.datetime] = mapped_column(server_default=now)
    due_at: Mapped[dt.datetime] = mapped_column(server_default=now)  # when the sweep rings for it
    tries: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))

    __table_args__ = (
        Index("ix_signal_due", "due_at"),
        Index("ix_signal_resource", "resource_id", "id"),
        Index("ix_signal_stack", "stack_id"),
    )


class Progress(Base):
    """How far a stack's traversal is, counted by the sweep now and then
    (docs/internals/protocol.md rule 18).
    """

    __tablename__ = "progress"

    stack_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    traversal: Mapped[int]
    counts: Mapped[Json] = mapped_column(JSONB)  # node state -> number of nodes that visit a resource
    counted_at: Mapped[dt.datetime] = mapped_column(server_default=now)
    seconds: Mapped[float] = mapped_column(Float, server_default=text("0"))  # that counting took
    final: Mapped[bool] = mapped_column(server_default=text("false"))  # counted after the traversal's end

    __table_args__ = (Index("ix_progress_open", "counted_at", postgresql_where=text("NOT final")),)


class DisturbedStack(Base):
    """A stack in another that somebody has changed by themselves, or has changed one below it: the next
    update of the stack around it sees to it. A row of its own: no visit that read before writes over it.
    """

    __tablename__ = "disturbed_stack"

    stack_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
