"""The table of what stacks have at Keystone: users of their own, and the projects that these are in."""

from __future__ import annotations

import datetime as dt

from sqlalchemy import CheckConstraint, Identity, Index, SmallInteger, text
from sqlalchemy.orm import Mapped, mapped_column

from orchestrator.store.tables.base import Base, check_in, now

STATES = ("making", "held", "going")


class StackUser(Base):
    """A user of a resource's, or the project of all users of a tree of stacks. The row is there before
    Keystone is asked for it and until it is known to be gone (docs/internals/protocol.md rule 14).

    `making`: asked for, or about to be; `held`: there; `going`: being removed, because the resource or the
    stack is gone.
    """

    __tablename__ = "stack_user"

    id: Mapped[int] = mapped_column(Identity(), primary_key=True)
    root_id: Mapped[int]  # the root stack
    resource_id: Mapped[int | None]  # null: it is the project
    name: Mapped[str] = mapped_column(unique=True)  # at Keystone
    keystone_id: Mapped[str | None]  # null: it is not known to be there
    state: Mapped[str] = mapped_column(server_default="making")
    sealed: Mapped[bytes]  # the password, encrypted
    due_at: Mapped[dt.datetime | None]  # from when on it is removed, if nobody has it any more
    tries: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))  # to remove it, in vain
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
