"""Table of circuit breakers: providers that give no answer."""

from __future__ import annotations

import datetime as dt

from sqlalchemy import CheckConstraint, SmallInteger, text
from sqlalchemy.orm import Mapped, mapped_column

from orchestrator.store.tables.base import Base, now


class CircuitBreaker(Base):
    """A service that failed to answer a project's last calls, or did so a short time ago (`answered_at`).

    Without `opened_at` failures are only counted. While it is open, a single visit at a time calls it.
    """

    __tablename__ = "circuit_breaker"

    project_id: Mapped[str] = mapped_column(primary_key=True)
    service: Mapped[str] = mapped_column(primary_key=True)
    failures: Mapped[int] = mapped_column(server_default=text("1"))  # calls in a row without an answer
    last_error: Mapped[str]
    answered_at: Mapped[dt.datetime | None]
    since: Mapped[dt.datetime] = mapped_column(server_default=now)
    opened_at: Mapped[dt.datetime | None]
    probes: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))  # calls since it is open
    probe_at: Mapped[dt.datetime | None]  # not before
    probing_until: Mapped[dt.datetime | None]  # by the visit that calls the service now
    stacks: Mapped[list[int]] = mapped_column(server_default=text("'{}'"))  # with an event about it

    __table_args__ = (
        CheckConstraint("(opened_at IS NULL) = (probe_at IS NULL)", name="open_has_a_probe"),
        {"postgresql_with": {"fillfactor": "50"}},
    )
