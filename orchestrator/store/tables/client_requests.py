"""The table of requests with a client token: repeating such a request has no further effect."""

from __future__ import annotations

import datetime as dt
import uuid as uuid_

from sqlalchemy import Index
from sqlalchemy.orm import Mapped, mapped_column

from orchestrator.store.tables.base import Base, now


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
