"""Tables of objects at Keystone: credentials that users delegated for the later operations of their stacks,
and the users and projects of stacks.
"""

from __future__ import annotations

import datetime as dt
import uuid as uuid_

from sqlalchemy import CheckConstraint, Identity, Index, SmallInteger, text
from sqlalchemy.orm import Mapped, mapped_column

from orchestrator.store.tables.base import Base, check_in, now

STATES = ("making", "held", "going")


class Credential(Base):
    """A delegated credential. Its row exists before it is requested and until its removal is confirmed
    (docs/internals/protocol.md rule 14).

    `making`: requested, not yet owned by a stack; `held`: owned by the root stack, and used by all stacks
    below it; `going`: to be removed. A credential that is `making` for too long becomes `going`. A stack
    holds credentials for its desired revision, its last good revision, and a caller's delete or check.
    """

    __tablename__ = "credential"

    id: Mapped[int] = mapped_column(Identity(), primary_key=True)
    stack_uuid: Mapped[uuid_.UUID]  # of the root stack, which may not exist yet, or never will
    stack_id: Mapped[int | None]
    project_id: Mapped[str]
    user_id: Mapped[str]  # the delegating user
    roles: Mapped[list[str] | None]  # names of the delegated roles; null: of an older version, unknown
    state: Mapped[str] = mapped_column(server_default="making")
    sealed: Mapped[bytes]  # the credential, encrypted
    due_at: Mapped[dt.datetime | None]  # the next attempt to remove it; null: it is held
    tries: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))  # failed attempts to remove it
    last_error: Mapped[str | None]
    created_at: Mapped[dt.datetime] = mapped_column(server_default=now)

    __table_args__ = (
        CheckConstraint(check_in("state", STATES), name="state_known"),
        CheckConstraint("(state = 'held') = (due_at IS NULL)", name="held_is_not_due"),
        CheckConstraint("state <> 'held' OR stack_id IS NOT NULL", name="held_by_a_stack"),
        Index("ix_credential_held", "stack_id", postgresql_where=text("state = 'held'")),
        Index("ix_credential_due", "due_at", postgresql_where=text("due_at IS NOT NULL")),
    )


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
