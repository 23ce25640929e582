"""Tables of events, accepted signals, and counted progress."""

from __future__ import annotations

import datetime as dt

from sqlalchemy import Float, Identity, Index, SmallInteger, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from orchestrator.store.tables.base import AGGRESSIVE_AUTOVACUUM, Base, Json, Xid8, now


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
