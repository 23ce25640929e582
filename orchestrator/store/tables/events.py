"""Tables of events, accepted signals, counted progress, and webhooks with their positions in the order of
events.
"""

from __future__ import annotations

import datetime as dt
import uuid as uuid_

from sqlalchemy import CheckConstraint, Float, ForeignKey, Identity, Index, SmallInteger, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from orchestrator.json_types import JsonObject
from orchestrator.store.tables.base import AGGRESSIVE_AUTOVACUUM, Base, Xid8, check_in, now


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
    properties: Mapped[JsonObject | None]
    created_at: Mapped[dt.datetime] = mapped_column(server_default=text("clock_timestamp()"))
    automatic: Mapped[bool] = mapped_column(server_default=text("false"))  # of an automatic repair

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
    counts: Mapped[JsonObject] = mapped_column(JSONB)  # node state -> number of nodes that visit a resource
    rollouts: Mapped[JsonObject] = mapped_column(JSONB, server_default=text("'[]'"))  # groups in batches
    counted_at: Mapped[dt.datetime] = mapped_column(server_default=now)
    seconds: Mapped[float] = mapped_column(Float, server_default=text("0"))  # duration of the count
    final: Mapped[bool] = mapped_column(server_default=text("false"))  # counted after the traversal's end

    __table_args__ = (Index("ix_progress_open", "counted_at", postgresql_where=text("NOT final")),)


class Webhook(Base):
    """A URL that receives events, in order. `xid` and `event_id` are its position: all selected events up to
    there have been accepted by the receiver.
    """

    __tablename__ = "webhook"

    id: Mapped[int] = mapped_column(Identity(), primary_key=True)
    uuid: Mapped[uuid_.UUID] = mapped_column(unique=True)
    project_id: Mapped[str]
    stack_id: Mapped[int | None] = mapped_column(ForeignKey("stack.id", ondelete="CASCADE"))  # null: all
    nested_depth: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))
    only_stacks: Mapped[bool] = mapped_column(server_default=text("false"))  # no events of resources
    shown_url: Mapped[str]  # without secrets
    sealed: Mapped[bytes]  # the complete URL and the signing secret, encrypted
    state: Mapped[str] = mapped_column(server_default="active")
    xid: Mapped[int] = mapped_column(Xid8)
    event_id: Mapped[int]
    has_new_events: Mapped[bool] = mapped_column(
        server_default=text("false")
    )  # new events arrived after the claim
    slow: Mapped[bool] = mapped_column(server_default=text("false"))  # the last delivery was slow
    tries: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))  # consecutive failures
    delivered: Mapped[int] = mapped_column(server_default=text("0"))  # events
    delivered_at: Mapped[dt.datetime | None]
    failing_since: Mapped[dt.datetime | None]
    last_error: Mapped[str | None]
    due_at: Mapped[dt.datetime | None] = mapped_column(server_default=now)  # null: all events are delivered
    lease: Mapped[int | None]
    leased_until: Mapped[dt.datetime | None]
    of_environment: Mapped[bool] = mapped_column(server_default=text("false"))  # an event sink of the stack
    created_by: Mapped[str] = mapped_column(server_default="")
    created_at: Mapped[dt.datetime] = mapped_column(server_default=now)

    __table_args__ = (
        CheckConstraint(check_in("state", ("active", "dead", "off")), name="state_known"),
        CheckConstraint("(lease IS NULL) = (leased_until IS NULL)", name="lease_has_an_end"),
        CheckConstraint("nested_depth >= 0", name="depth_counts"),
        Index("ix_webhook_project", "project_id", "id"),
        Index("ix_webhook_stack", "stack_id", postgresql_where=text("stack_id IS NOT NULL")),
        Index("ix_webhook_due", "due_at", postgresql_where=text("state = 'active'")),
    )
