"""Tables of stacks, their revisions, and the templates and files that revisions name.

Declarations only (docs/internals/protocol.md "Rows"). A change here needs a migration in `alembic/`; a test
compares the two.

The tables with a row per resource or event have no foreign key to the stack: checking one locks the stack's
row, and all checks of a stack would queue for it (invariant 7). `operations/maintenance/purge.py` deletes the
rows that a stack leaves.
"""

from __future__ import annotations

import datetime as dt
import uuid as uuid_

from sqlalchemy import (
    CheckConstraint,
    ForeignKey,
    Identity,
    Index,
    Integer,
    SmallInteger,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from orchestrator.engine.states import OUTCOMES, STACK_ACTIONS, STATUSES
from orchestrator.json_types import JsonObject
from orchestrator.store.tables.base import Base, check_in, now


class Content(Base):
    """Templates and files, stored once, by the SHA-256 of their bytes."""

    __tablename__ = "content"

    hash: Mapped[bytes] = mapped_column(primary_key=True)
    body: Mapped[bytes]
    created_at: Mapped[dt.datetime] = mapped_column(server_default=now)

    __table_args__ = (CheckConstraint("length(hash) = 32", name="hash_is_sha256"),)


class ProjectContent(Base):
    """A text that revisions of a project refer to: the quota of stored bytes counts it once per project."""

    __tablename__ = "project_content"

    project_id: Mapped[str] = mapped_column(primary_key=True)
    hash: Mapped[bytes] = mapped_column(ForeignKey("content.hash", ondelete="CASCADE"), primary_key=True)
    size: Mapped[int]  # bytes

    __table_args__ = (Index("ix_project_content_hash", "hash"),)


class Stack(Base):
    """A stack; `traversal` only grows and serves as its version."""

    __tablename__ = "stack"

    id: Mapped[int] = mapped_column(Identity(), primary_key=True)
    uuid: Mapped[uuid_.UUID] = mapped_column(unique=True)
    project_id: Mapped[str]
    name: Mapped[str]
    owner_id: Mapped[int | None] = mapped_column(ForeignKey("stack.id"))
    parent_resource_id: Mapped[int | None] = mapped_column(unique=True)  # a single child per resource row
    parent_resource: Mapped[str | None]
    root_id: Mapped[int]
    depth: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))
    action: Mapped[str]
    status: Mapped[str]
    status_reason: Mapped[str] = mapped_column(server_default="")
    traversal: Mapped[int] = mapped_column(server_default=text("0"))
    halted_traversal: Mapped[int | None]  # set once, by the first failure of that traversal
    revision_id: Mapped[int | None]  # the desired revision
    good_revision_id: Mapped[int | None]  # the last revision that was COMPLETE
    disable_rollback: Mapped[bool] = mapped_column(server_default=text("true"))
    timeout_mins: Mapped[int | None]
    tags: Mapped[list[str]] = mapped_column(server_default=text("'{}'"))
    delete_on_failure: Mapped[bool] = mapped_column(
        server_default=text("false")
    )  # a create that fails is deleted, not rolled back
    convergence_policy: Mapped[str] = mapped_column(server_default="report")
    keep_going: Mapped[bool] = mapped_column(
        server_default=text("false")
    )  # a failure stops only its dependents
    converge: Mapped[bool] = mapped_column(
        server_default=text("false")
    )  # this traversal compares with the observed state
    automatic: Mapped[bool] = mapped_column(
        server_default=text("false")
    )  # this traversal is a repair that nobody requested
    retain: Mapped[bool] = mapped_column(
        server_default=text("false")
    )  # this traversal leaves all provider objects in place
    credentials: Mapped[bytes | None]  # encrypted
    credential_id: Mapped[int | None]  # the content of the stack runs with it
    operation_credential_id: Mapped[int | None]  # the caller's, of this DELETE or CHECK, if delegated
    username: Mapped[str] = mapped_column(server_default="")
    user_project_id: Mapped[str | None]
    created_at: Mapped[dt.datetime] = mapped_column(server_default=now)
    updated_at: Mapped[dt.datetime | None]  # when the last action other than create was requested
    action_started_at: Mapped[dt.datetime] = mapped_column(server_default=now)
    deleted_at: Mapped[dt.datetime | None]
    request_id: Mapped[str | None]  # of the request that started this traversal, for the log
    queued_action: Mapped[str | None]  # started when the stack comes to rest COMPLETE
    queued_at: Mapped[dt.datetime | None]
    resume: Mapped[bool | None]  # continue after an outage; NULL: only operations that the engine started
    resume_at: Mapped[dt.datetime | None]  # it failed in an outage and continues afterwards, not before
    resume_tries: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))

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
        Index(
            "ix_stack_live_project",
            "project_id",
            postgresql_include=["revision_id"],
            postgresql_where=text("deleted_at IS NULL"),
        ),
        Index("ix_stack_root", "root_id"),
        Index("ix_stack_resume", "resume_at", postgresql_where=text("resume_at IS NOT NULL")),
        Index("ix_stack_owner", "owner_id", postgresql_where=text("owner_id IS NOT NULL")),
        Index("ix_stack_in_progress", "action_started_at", postgresql_where=text("status = 'IN_PROGRESS'")),
        Index("ix_stack_deleted", "deleted_at", postgresql_where=text("deleted_at IS NOT NULL")),
        Index(
            "ix_stack_queued_action",
            "queued_at",
            postgresql_where=text("queued_action IS NOT NULL AND status <> 'IN_PROGRESS'"),
        ),
    )


class StaleChild(Base):
    """A nested stack that was changed directly, or has a descendant that was: the next update of its parent
    checks it. A separate table, so that a visit with older values cannot overwrite it.
    """

    __tablename__ = "stale_child"

    stack_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)


class Revision(Base):
    """A template with its environment, files, parameters and settings, as accepted; never changed afterwards.

    `outline` is the part that responses need without the template: version, description, parameter schemas,
    outputs. `sealed` holds the values of hidden parameters, encrypted; their names are in `parameters` with a
    null. `author` is who submitted the content; a child's revision has its root's. A revision of an
    older version has none, and runs with the credential of its stack.
    """

    __tablename__ = "revision"

    id: Mapped[int] = mapped_column(Identity(), primary_key=True)
    stack_id: Mapped[int] = mapped_column(ForeignKey("stack.id", ondelete="CASCADE"))
    number: Mapped[int]
    action: Mapped[str]
    template_hash: Mapped[bytes] = mapped_column(ForeignKey("content.hash"))
    environment: Mapped[JsonObject] = mapped_column(server_default=text("'{}'"))
    files: Mapped[JsonObject] = mapped_column(JSONB, server_default=text("'{}'"))  # name -> hex hash
    parameters: Mapped[JsonObject] = mapped_column(server_default=text("'{}'"))  # name -> converted value
    sealed: Mapped[bytes | None]
    outline: Mapped[JsonObject]
    resource_count: Mapped[int] = mapped_column(Integer, server_default=text("0"))  # without nested stacks
    settings: Mapped[JsonObject | None] = mapped_column(JSONB)  # of the stack: tags, timeout_mins …
    adopted: Mapped[bytes | None]  # of an ADOPT: name -> existing object, encrypted
    stored_bytes: Mapped[int] = mapped_column(server_default=text("0"))  # of its columns and slices
    restores: Mapped[int | None]  # of a RESTORE: the snapshot, which may be gone by now
    traversal: Mapped[int | None]  # the traversal to this revision
    first_event: Mapped[int | None]  # the event of its start
    outcome: Mapped[str | None]
    ended_at: Mapped[dt.datetime | None]
    copy_of: Mapped[int | None]  # the number of the revision that a rollback copied
    created_by: Mapped[str] = mapped_column(server_default="")
    author: Mapped[JsonObject | None] = mapped_column(JSONB)  # user, user_id, project_id, roles
    credential_id: Mapped[int | None]  # delegated by the author; the content runs with it
    denied_types: Mapped[list[str] | None]  # to its author; NULL: of an older version, not known
    created_at: Mapped[dt.datetime] = mapped_column(server_default=now)

    __table_args__ = (
        UniqueConstraint("stack_id", "number"),
        CheckConstraint(check_in("outcome", OUTCOMES), name="outcome_known"),
        CheckConstraint("(outcome IS NULL) = (ended_at IS NULL)", name="outcome_has_a_time"),
        CheckConstraint("outcome IS NULL OR traversal IS NOT NULL", name="outcome_of_a_traversal"),
        CheckConstraint(check_in("action", STACK_ACTIONS), name="action_known"),
        Index("ix_revision_template_hash", "template_hash"),
        Index("ix_revision_stored_bytes", "stack_id", postgresql_include=["stored_bytes"]),
        Index("ix_revision_open", "stack_id", postgresql_where=text("outcome IS NULL")),
        Index(
            "ix_revision_file_hashes",  # revisions that refer to a file, for the purge
            text("jsonb_path_query_array(files, '$.*')"),
            postgresql_using="gin",
            postgresql_with={"fastupdate": "off"},
        ),
    )


class AcceptedResources(Base):
    """A slice of the resources of a large template, by name: readers find them here until the plan has
    written their rows. Small templates are parsed instead.
    """

    __tablename__ = "accepted_resources"

    revision_id: Mapped[int] = mapped_column(ForeignKey("revision.id", ondelete="CASCADE"), primary_key=True)
    last_name: Mapped[str] = mapped_column(primary_key=True)  # of the slice
    entries: Mapped[bytes]  # JSON: the fields of `AcceptedResource` of each resource
