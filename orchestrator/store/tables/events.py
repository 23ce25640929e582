"""Tables of events, accepted signals, and counted progress."""

from __future__ import annotations

import datetime as dt

from sqlalchemy import Float, Identity, Index, SmallInteger, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from orchestrator.store.tables.base import AGGRESSIVE_AUTOVACUUM, Base, Json, Xid8, now


class Event(Base):
    """A change and its reason, in order. The public uuid combines the stack's uuid and `id`
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
        Index("ix_event_xid", "xid"),  # of all stacks, for readers of more than a tree
        {"postgresql_with": AGGRESSIVE_AUTOVACUUM},
    )


class Signal(Base):
    """An accepted signal that its resource has still to process, in the order of arrival; deleted
    afterwards.
    """

    __tablename__ = "signal"

    id: Mapped[int] = mapped_column(Identity(), primary_key=True)
    stack_id: Mapped[int]
    resource_id: Mapped[int]
    details: Mapped[bytes]  # JSON, encrypted
    about: Mapped[
        str | None
    ]  # null: sent by a client; otherwise an internal signal (store/signals/watchers.py)
    created_at: Mapped[dt.datetime] = mapped_column(server_default=now)
    due_at: Mapped[dt.datetime] = mapped_column(server_default=now)  # when the sweep sends its message
    tries: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))

    __table_args__ = (
        Index("ix_signal_due", "due_at"),
        Index("ix_signal_resource", "resource_id", "id"),
        Index("ix_signal_stack", "stack_id"),
    )


class Progress(Base):
    """The progress of a stack's traversal, counted by the sweep at intervals (docs/internals/protocol.md rule
    18).
    """

    __tablename__ = "progress"

    stack_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    traversal: Mapped[int]
    counts: Mapped[Json] = mapped_column(JSONB)  # node state -> number of nodes that visit a resource
    counted_at: Mapped[dt.datetime] = mapped_column(server_default=now)
    seconds: Mapped[float] = mapped_column(Float, server_default=text("0"))  # duration of the count
    final: Mapped[bool] = mapped_column(server_default=text("false"))  # counted after the traversal's end

    __table_args__ = (Index("ix_progress_open", "counted_at", postgresql_where=text("NOT final")),)
