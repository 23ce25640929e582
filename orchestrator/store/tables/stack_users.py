"""The table of users and projects that stacks have at Keystone."""

from __future__ import annotations

import datetime as dt

from sqlalchemy import CheckConstraint, Identity, Index, SmallInteger, text
from sqlalchemy.orm import Mapped, mapped_column

from orchestrator.store.tables.base import Base, check_in, now

STATES = ("making", "held", "going")


class StackUser(Base):
    """The user of a resource, or the project for all users of a tree of stacks. The row exists before the
    request to Keystone and until the removal is confirmed (docs/internals/protocol.md rule 14).

    `making`: requested, or about to be; `held`: created; `going`: being removed, because the resource or the
    stack is gone.
    """

    __tablename__ = "stack_user"

    id: Mapped[int] = mapped_column(Identity(), primary_key=True)
    root_id: Mapped[int]  # the root stack
    resource_id: Mapped[int | None]  # null: the project
    name: Mapped[str] = mapped_column(unique=True)  # at Keystone
    keystone_id: Mapped[str | None]  # null: not known to exist
    state: Mapped[str] = mapped_column(server_default="making")
    sealed: Mapped[bytes]  # the password, encrypted
    due_at: Mapped[dt.datetime | None]  # it is removed from then on, unless it is in use
    tries: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))  # failed attempts to remove it
    last_error: Mapped[str | None]
    created_at: Mapped[dt.datetime] = mapped_column(server_default=now)

    __table_args__ = (
        CheckConstraint(check_in("state", STATES), name="state_known"),
        CheckConstraint("state <> 'held' OR keystone_id IS NOT NULL", name="held_is_known"),
        CheckConstraint("state = 'held' OR due_at IS NOT NULL", name="looked_after"),
        Index("ix_stack_user_resource", "resource_id"),
        Index("ix_stack_user_root", "root_id"),
        Index("ix_stack_user_due", "due_at", postgresql_where=text("due_at IS NOT NULL")),
    )
