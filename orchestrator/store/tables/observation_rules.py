"""Table of policies, pauses and accepted differences of the observation (operations/adr/0018).

A row is never changed. A rule ends with `ended_at`, and a new rule for the same object is a new row: the
ended rows are the history.
"""

from __future__ import annotations

import datetime as dt
import uuid as uuid_

from sqlalchemy import CheckConstraint, Identity, Index, text
from sqlalchemy.orm import Mapped, mapped_column

from orchestrator.engine.observation.policies import MODES, REPETITIONS, RULE_KINDS
from orchestrator.store.tables.base import Base, check_in, now


class ObservationRule(Base):
    """A policy, a pause or an acceptance; without a stack it concerns the whole project."""

    __tablename__ = "observation_rule"

    id: Mapped[int] = mapped_column(Identity(), primary_key=True)
    uuid: Mapped[uuid_.UUID] = mapped_column(unique=True)
    project_id: Mapped[str]
    kind: Mapped[str]
    stack_id: Mapped[int | None]
    type: Mapped[str] = mapped_column(server_default="")
    resource: Mapped[str] = mapped_column(server_default="")  # path in the stack: group.0.server
    name: Mapped[str] = mapped_column(server_default="")  # of a policy to which environments refer
    mode: Mapped[str | None]  # of a policy
    interval_seconds: Mapped[float | None]  # of a policy: the longest one between two observations
    path: Mapped[str] = mapped_column(server_default="")  # of an acceptance: a pattern
    reason: Mapped[str] = mapped_column(server_default="")
    starts_at: Mapped[dt.datetime] = mapped_column(server_default=now)
    ends_at: Mapped[dt.datetime | None]  # of a window that repeats: the end of the first one
    repeats: Mapped[str] = mapped_column(server_default="")
    created_by: Mapped[str]
    created_at: Mapped[dt.datetime] = mapped_column(server_default=now)
    ended_at: Mapped[dt.datetime | None]  # removed or replaced
    ended_by: Mapped[str | None]

    __table_args__ = (
        CheckConstraint(check_in("kind", RULE_KINDS), name="kind_known"),
        CheckConstraint(check_in("mode", MODES), name="mode_known"),
        CheckConstraint(check_in("repeats", REPETITIONS), name="repetition_known"),
        CheckConstraint("(kind = 'policy') = (mode IS NOT NULL)", name="policy_has_a_mode"),
        CheckConstraint("interval_seconds IS NULL OR kind = 'policy'", name="interval_of_a_policy"),
        CheckConstraint("(kind = 'accept') = (path <> '')", name="acceptance_has_a_path"),
        CheckConstraint("kind <> 'pause' OR (ends_at IS NOT NULL AND reason <> '')", name="pause_ends"),
        CheckConstraint("(ended_at IS NULL) = (ended_by IS NULL)", name="end_has_an_author"),
        CheckConstraint(
            "name = '' OR (kind = 'policy' AND stack_id IS NULL AND type = '' AND resource = '')",
            name="name_is_the_object",
        ),
        Index("ix_observation_rule_project", "project_id", "id"),
        Index("ix_observation_rule_stack", "stack_id"),
        Index("ix_observation_rule_ended", "ended_at", postgresql_where=text("ended_at IS NOT NULL")),
        Index(
            "uq_observation_rule_object",
            "project_id", text("coalesce(stack_id, 0)"), "type", "resource", "name",
            unique=True,
            postgresql_where=text("kind = 'policy' AND ended_at IS NULL"),
        ),
    )  # fmt: skip
