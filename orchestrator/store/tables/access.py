"""Tables of access by key or token, to a stack or a project, of watchers of signals, of limits of projects,
of audit records, and of requests with a client token: repeating such a request has no further effect.
"""

from __future__ import annotations

import datetime as dt
import uuid as uuid_

from sqlalchemy import CheckConstraint, Identity, Index, text
from sqlalchemy.orm import Mapped, mapped_column

from orchestrator.store.tables.base import Base, now


class Access(Base):
    """Access to its stack that a resource grants; it ends with the row of the resource."""

    __tablename__ = "access"

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)  # of the resource
    stack_id: Mapped[int]
    key: Mapped[str | None] = mapped_column(unique=True)
    secret: Mapped[bytes | None]  # encrypted
    token_hash: Mapped[bytes | None] = mapped_column(unique=True)
    user_name: Mapped[str | None]  # the user, or the user of the key
    policies: Mapped[list[str]] = mapped_column(server_default=text("'{}'"))
    keystone_user: Mapped[str | None]  # the Keystone user whose tokens are accepted, too

    __table_args__ = (
        CheckConstraint("(key IS NULL) = (secret IS NULL)", name="key_has_a_secret"),
        CheckConstraint("length(token_hash) = 32", name="hash_is_sha256"),
        Index("ix_access_user", "stack_id", "user_name"),
        Index(
            "uq_access_keystone_user",
            "keystone_user",
            unique=True,
            postgresql_where=text("keystone_user IS NOT NULL"),
        ),
    )


class KeyPair(Base):
    """A caller's access key, and the secret for signing requests, for a project."""

    __tablename__ = "key_pair"

    id: Mapped[int] = mapped_column(Identity(), primary_key=True)
    key: Mapped[str] = mapped_column(unique=True)
    secret: Mapped[bytes]  # encrypted; needed to check a signature
    project_id: Mapped[str]
    name: Mapped[str]
    roles: Mapped[list[str]]
    created_at: Mapped[dt.datetime] = mapped_column(server_default=now)
    expires_at: Mapped[dt.datetime | None]
    revoked_at: Mapped[dt.datetime | None]


class Watcher(Base):
    """A resource that is visited again after a signal to another resource."""

    __tablename__ = "watcher"

    resource_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)  # the signalled resource
    watcher_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    stack_id: Mapped[int]

    __table_args__ = (
        Index("ix_watcher_watcher_id", "watcher_id"),
        Index("ix_watcher_stack_id", "stack_id"),
    )


class ApiToken(Base):
    """A caller's token for a project, stored as a SHA-256 of random bytes."""

    __tablename__ = "api_token"

    id: Mapped[int] = mapped_column(Identity(), primary_key=True)
    project_id: Mapped[str]
    name: Mapped[str]
    token_hash: Mapped[bytes] = mapped_column(unique=True)
    roles: Mapped[list[str]] = mapped_column(server_default=text("'{member}'"))
    created_at: Mapped[dt.datetime] = mapped_column(server_default=now)
    expires_at: Mapped[dt.datetime | None]
    revoked_at: Mapped[dt.datetime | None]

    __table_args__ = (CheckConstraint("length(token_hash) = 32", name="hash_is_sha256"),)


class EndedSession(Base):
    """A session of the console, or a token, that ended before its time."""

    __tablename__ = "ended_session"

    id: Mapped[int] = mapped_column(Identity(), primary_key=True)
    digest: Mapped[bytes] = mapped_column(unique=True)  # SHA-256 of the cookie or the token
    ends_at: Mapped[dt.datetime]  # invalid by itself from then on

    __table_args__ = (
        CheckConstraint("length(digest) = 32", name="digest_is_sha256"),
        Index("ix_ended_session_ends", "ends_at"),
    )


class Quota(Base):
    """A limit of a project, in place of the settings'."""

    __tablename__ = "quota"

    project_id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    maximum: Mapped[int]  # -1: no limit
    updated_at: Mapped[dt.datetime] = mapped_column(server_default=now)


class AuditRecord(Base):
    """A change by a server command or a request, written before it takes effect."""

    __tablename__ = "audit_record"

    id: Mapped[int] = mapped_column(Identity(), primary_key=True)
    created_at: Mapped[dt.datetime] = mapped_column(server_default=now)
    action: Mapped[str]  # a name of the policy, or `token:create` and the like for server commands
    project_id: Mapped[str | None]
    user_name: Mapped[str | None]  # of the caller; for commands `os:NAME`
    origin: Mapped[str | None]  # client address; for commands the name of the host
    target: Mapped[str | None]  # stack, token, key pair or limit
    request_id: Mapped[str | None]
    result: Mapped[str | None]  # HTTP status, `done` or `failed: …`; null: unknown, the process ended

    __table_args__ = (
        Index("ix_audit_record_project", "project_id", "id"),
        Index("ix_audit_record_created", "created_at"),
    )


class ClientRequest(Base):
    """An accepted request, by the token that its client gave it."""

    __tablename__ = "client_request"

    project_id: Mapped[str] = mapped_column(primary_key=True)
    token: Mapped[str] = mapped_column(primary_key=True)
    digest: Mapped[bytes]  # of the whole request
    stack_uuid: Mapped[uuid_.UUID]  # the stack that it created, changed or deleted
    stack_name: Mapped[str]
    created_at: Mapped[dt.datetime] = mapped_column(server_default=now)

    __table_args__ = (Index("ix_client_request_created", "created_at"),)
