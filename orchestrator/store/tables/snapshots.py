"""Tables of snapshots: a row per snapshot of a stack, and a row per resource in it."""

from __future__ import annotations

import datetime as dt
import uuid as uuid_

from sqlalchemy import CheckConstraint, ForeignKey, Identity, Index, SmallInteger, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from orchestrator.engine.states import STATUSES
from orchestrator.json_types import JsonObject
from orchestrator.store.tables.base import Base, check_in, now


class Snapshot(Base):
    """The state of a stack at a moment: the revision, and a row for each of its resources."""

    __tablename__ = "snapshot"

    id: Mapped[int] = mapped_column(Identity(), primary_key=True)
    uuid: Mapped[uuid_.UUID] = mapped_column(unique=True)
    stack_id: Mapped[int] = mapped_column(ForeignKey("stack.id", ondelete="CASCADE"))
    name: Mapped[str | None]
    action: Mapped[str] = mapped_column(server_default="CREATE")  # or DELETE: to be deleted
    status: Mapped[str]
    status_reason: Mapped[str]
    traversal: Mapped[int]
    revision_id: Mapped[int] = mapped_column(ForeignKey("revision.id", ondelete="CASCADE"))
    created_at: Mapped[dt.datetime] = mapped_column(server_default=now)
    due_at: Mapped[dt.datetime | None]  # of a DELETE: the next step
    tries: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))
    stored_bytes: Mapped[int] = mapped_column(server_default=text("0"))  # of its resources, when it began

    __table_args__ = (
        CheckConstraint(check_in("action", ("CREATE", "DELETE")), name="action_known"),
        CheckConstraint(check_in("status", STATUSES), name="status_known"),
        CheckConstraint("(action = 'DELETE') = (due_at IS NOT NULL)", name="delete_is_due"),
        Index("ix_snapshot_stack", "stack_id", "created_at"),
        Index("ix_snapshot_due", "due_at", postgresql_where=text("due_at IS NOT NULL")),
        Index("ix_snapshot_revision_id", "revision_id"),
    )


class ResourceSnapshot(Base):
    """A resource in a snapshot; `kept` is the data with which its type creates it again, encrypted."""

    __tablename__ = "resource_snapshot"

    id: Mapped[int] = mapped_column(Identity(), primary_key=True)
    snapshot_id: Mapped[int] = mapped_column(ForeignKey("snapshot.id", ondelete="CASCADE"))
    name: Mapped[str]
    type: Mapped[str]
    runs_as: Mapped[str | None]
    token: Mapped[str]  # the token of the request to the provider
    physical_id: Mapped[str | None]
    action: Mapped[str]
    status: Mapped[str]
    metadata_: Mapped[JsonObject | None] = mapped_column("metadata")
    data: Mapped[JsonObject | None]
    sealed: Mapped[bytes | None]  # metadata and data, encrypted, when any of it is secret
    kept: Mapped[bytes | None]

    __table_args__ = (
        UniqueConstraint("snapshot_id", "name"),
        CheckConstraint("sealed IS NULL OR coalesce(metadata, data) IS NULL", name="sealed_or_plain"),
    )
