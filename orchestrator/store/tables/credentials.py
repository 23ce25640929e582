"""The table of rights that users gave us at Keystone, for what their stacks do later."""

from __future__ import annotations

import datetime as dt
import uuid as uuid_

from sqlalchemy import CheckConstraint, Identity, Index, SmallInteger, text
from sqlalchemy.orm import Mapped, mapped_column

from orchestrator.store.tables.base import Base, check_in, now

STATES = ("making", "held", "going")


class Credential(Base):
    """One right. Its row is there before it is asked for and until it is known to be gone
    (docs/internals/protocol.md rule 14).

    `making`: asked for, and not a stack's yet; `held`: the root stack's and all its children's; `going`: to
    be removed. What is making for too long is going.
    """

    __tablename__ = "credential"

    id: Mapped[int] = mapped_column(Identity(), primary_key=True)
    stack_uuid: Mapped[uuid_.UUID]  # of the root, which may not be there yet, or never come
    stack_id: Mapped[int | None]
    project_id: Mapped[str]
    user_id: Mapped[str]  # who gave it
    state: Mapped[str] = mapped_column(server_default="making")
    sealed: Mapped[bytes]  # what it is, encrypted
    due_at: Mapped[dt.datetime | None]  # when it is looked after next; null: it is held
    tries: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))  # to remove it, in vain
    last_error: Mapped[str | None]
    created_at: Mapped[dt.datetime] = mapped_column(server_default=now)

    __table_args__ = (
        CheckConstraint(check_in("state", STATES), name="state_known"),
        CheckConstraint("(state = 'held') = (due_at IS NULL)", name="held_is_not_due"),
        CheckConstraint("state <> 'held' OR stack_id IS NOT NULL", name="held_by_a_stack"),
        Index("uq_credential_held", "stack_id", unique=True, postgresql_where=text("state = 'held'")),
        Index("ix_credential_due", "due_at", postgresql_where=text("due_at IS NOT NULL")),
    )
