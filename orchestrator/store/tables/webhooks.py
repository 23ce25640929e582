"""The table of webhooks: their filters, and the position of each in the order of events."""

from __future__ import annotations

import datetime as dt
import uuid as uuid_

from sqlalchemy import CheckConstraint, ForeignKey, Identity, Index, SmallInteger, text
from sqlalchemy.orm import Mapped, mapped_column

from orchestrator.store.tables.base import Base, Xid8, check_in, now


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
    rung: Mapped[bool] = mapped_column(server_default=text("false"))  # new events arrived after the claim
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
