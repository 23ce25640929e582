"""Tables of the continuous observation: groups, verdicts and their history (operations/adr/0017).

A round without news writes the row of its group only.
"""

from __future__ import annotations

import datetime as dt

from sqlalchemy import CheckConstraint, Identity, Index, Integer, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from orchestrator.engine.observation.drift import DRIFT_STATES, GROUP_KINDS, OF_PROJECT, PROVEN_STATES
from orchestrator.json_types import JsonObject
from orchestrator.store.tables.base import Base, check_in, now


class ObservationGroup(Base):
    """The resources of a project that share an observation: a row per region, service and kind."""

    __tablename__ = "observation_group"

    id: Mapped[int] = mapped_column(Identity(), primary_key=True)
    project_id: Mapped[str]
    region: Mapped[str]
    service: Mapped[str]  # "" of a group of the whole project
    kind: Mapped[str]
    types: Mapped[list[str]] = mapped_column(server_default=text("'{}'"))  # names, in use
    due_at: Mapped[dt.datetime] = mapped_column(server_default=now)  # advanced at the end of a round
    enqueued_at: Mapped[dt.datetime | None]  # of the message that no task has taken yet
    lease: Mapped[int | None]
    leased_until: Mapped[dt.datetime | None]
    interval_seconds: Mapped[float] = mapped_column(server_default=text("0"))  # up to the next round
    after_id: Mapped[int] = mapped_column(server_default=text("0"))  # of the round in progress, if single
    round_at: Mapped[dt.datetime | None]  # start of the round in progress, or of the last one
    observed_at: Mapped[dt.datetime | None]  # start of the last complete round
    previous_at: Mapped[dt.datetime | None]  # start of the complete round before
    seconds: Mapped[float | None]  # of the last round
    objects: Mapped[int] = mapped_column(Integer, server_default=text("0"))  # observed in the last round
    calls: Mapped[int] = mapped_column(Integer, server_default=text("0"))
    rounds: Mapped[int] = mapped_column(server_default=text("0"))
    failing_since: Mapped[dt.datetime | None]  # all resources are unknown
    failing_reason: Mapped[str | None]
    credential_id: Mapped[int | None]  # root stack whose credential was used last
    loss_since: Mapped[dt.datetime | None]  # the circuit breaker has opened
    lost: Mapped[int | None] = mapped_column(Integer)
    lost_of: Mapped[int | None] = mapped_column(Integer)
    loss_approved_at: Mapped[dt.datetime | None]
    loss_approved_by: Mapped[str | None]

    __table_args__ = (
        UniqueConstraint("project_id", "region", "service", "kind"),
        CheckConstraint(check_in("kind", GROUP_KINDS), name="kind_known"),
        CheckConstraint(f"({check_in('kind', OF_PROJECT)}) = (service = '')", name="project_has_no_service"),
        CheckConstraint("(lease IS NULL) = (leased_until IS NULL)", name="lease_has_an_end"),
        CheckConstraint("(failing_since IS NULL) = (failing_reason IS NULL)", name="failing_has_a_reason"),
        Index("ix_observation_group_due", "due_at"),
        {"postgresql_with": {"fillfactor": "50"}},
    )


class ObservationNotice(Base):
    """An object that a notification names: it is observed next. A row per object, and few per project."""

    __tablename__ = "observation_notice"

    project_id: Mapped[str] = mapped_column(primary_key=True)
    physical_id: Mapped[str] = mapped_column(primary_key=True)
    noted_at: Mapped[dt.datetime] = mapped_column(server_default=now)
    due_at: Mapped[dt.datetime] = mapped_column(server_default=now)


class ObservationFault(Base):
    """A stack tree whose credential is refused: its resources are unknown."""

    __tablename__ = "observation_fault"

    root_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    project_id: Mapped[str]
    since: Mapped[dt.datetime] = mapped_column(server_default=now)
    tried_at: Mapped[dt.datetime] = mapped_column(server_default=now)
    reason: Mapped[str]

    __table_args__ = (Index("ix_observation_fault_project", "project_id"),)


class ResourceVerdict(Base):
    """A resource that is not in sync, or could not be observed. `id` names the fault until it ends."""

    __tablename__ = "resource_verdict"

    id: Mapped[int] = mapped_column(Identity(), primary_key=True)
    resource_id: Mapped[int] = mapped_column(unique=True)
    stack_id: Mapped[int]
    root_id: Mapped[int]
    project_id: Mapped[str]
    group_id: Mapped[int]
    name: Mapped[str]
    type: Mapped[str]
    service: Mapped[str]
    verdict: Mapped[str]  # the last fact
    confirmed: Mapped[bool]  # false: an error, or an absence after an outage, that was observed once
    reason: Mapped[str] = mapped_column(server_default="")
    differences: Mapped[list[JsonObject]] = mapped_column(JSONB, server_default=text("'[]'"))
    since: Mapped[dt.datetime]
    unknown_since: Mapped[dt.datetime | None]
    unknown_reason: Mapped[str | None]
    physical_id: Mapped[str]
    observed_at: Mapped[dt.datetime]  # start of the round that wrote the row

    __table_args__ = (
        CheckConstraint(check_in("verdict", PROVEN_STATES), name="verdict_known"),
        CheckConstraint("(unknown_since IS NULL) = (unknown_reason IS NULL)", name="unknown_has_a_reason"),
        CheckConstraint("verdict <> 'IN_SYNC' OR unknown_since IS NOT NULL", name="deviates"),
        Index("ix_resource_verdict_project", "project_id", "resource_id"),
        Index("ix_resource_verdict_stack", "stack_id"),
        Index("ix_resource_verdict_root", "root_id"),
        Index("ix_resource_verdict_group", "group_id", "resource_id"),
    )


class VerdictHistory(Base):
    """A verdict that has ended; `fault_id` was its id."""

    __tablename__ = "verdict_history"

    id: Mapped[int] = mapped_column(Identity(), primary_key=True)
    fault_id: Mapped[int]
    resource_id: Mapped[int]
    stack_id: Mapped[int]
    root_id: Mapped[int | None]  # null: written by a release that did not record it
    project_id: Mapped[str]
    name: Mapped[str]
    type: Mapped[str]
    service: Mapped[str]
    verdict: Mapped[str]
    reason: Mapped[str] = mapped_column(server_default="")
    differences: Mapped[list[JsonObject]] = mapped_column(JSONB, server_default=text("'[]'"))
    physical_id: Mapped[str]
    first_seen_at: Mapped[dt.datetime]
    last_seen_at: Mapped[dt.datetime]
    ended_at: Mapped[dt.datetime] = mapped_column(server_default=now)

    __table_args__ = (
        CheckConstraint(check_in("verdict", DRIFT_STATES), name="verdict_known"),
        Index("ix_verdict_history_stack", "stack_id", "id"),
        Index("ix_verdict_history_root", "root_id", "id"),
        Index("ix_verdict_history_project", "project_id", "id"),
        Index("ix_verdict_history_ended", "ended_at"),
    )
