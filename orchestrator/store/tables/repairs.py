"""Table of repairs: a row per fault (operations/adr/0019)."""

from __future__ import annotations

import datetime as dt
import uuid as uuid_

from sqlalchemy import CheckConstraint, Identity, Index, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from orchestrator.engine.observation.repairs import ACTIONS, REPAIR_STATUSES
from orchestrator.json_types import JsonObject
from orchestrator.store.tables.base import Base, check_in, now


class Repair(Base):
    """The decision about a fault, and its repair. `fault_id` is the id of the verdict."""

    __tablename__ = "repair"

    id: Mapped[int] = mapped_column(Identity(), primary_key=True)
    uuid: Mapped[uuid_.UUID] = mapped_column(unique=True, server_default=text("gen_random_uuid()"))
    fault_id: Mapped[int] = mapped_column(unique=True)
    project_id: Mapped[str]
    stack_id: Mapped[int]
    root_id: Mapped[int]
    group_id: Mapped[int]
    resource_id: Mapped[int]
    name: Mapped[str]
    type: Mapped[str]
    physical_id: Mapped[str]
    verdict: Mapped[str]
    fault_reason: Mapped[str]
    differences: Mapped[list[JsonObject]] = mapped_column(JSONB)
    action: Mapped[str | None]
    status: Mapped[str]
    reason: Mapped[str] = mapped_column(server_default="")  # of the status
    due_at: Mapped[dt.datetime | None]  # of the next decision
    traversal: Mapped[int | None]  # of the root stack, that repairs
    created_at: Mapped[dt.datetime] = mapped_column(server_default=now)
    started_at: Mapped[dt.datetime | None]
    ended_at: Mapped[dt.datetime | None]
    decided_by: Mapped[str | None]  # approved or declined
    decided_at: Mapped[dt.datetime | None]
    comment: Mapped[str | None]  # of this user

    __table_args__ = (
        CheckConstraint(check_in("status", REPAIR_STATUSES), name="status_known"),
        CheckConstraint(check_in("action", ACTIONS), name="action_known"),
        CheckConstraint("(started_at IS NULL) = (traversal IS NULL)", name="start_has_a_traversal"),
        CheckConstraint("(decided_at IS NULL) = (decided_by IS NULL)", name="approval_has_an_author"),
        Index("ix_repair_due", "due_at", postgresql_where=text("due_at IS NOT NULL")),
        Index("ix_repair_started", "root_id", postgresql_where=text("status = 'started'")),
        Index("ix_repair_stack", "stack_id", "name"),
        Index("ix_repair_project", "project_id", "id"),
    )
