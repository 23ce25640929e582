"""The tables of worker processes: which there are, and when one of them swept last."""

from __future__ import annotations

import datetime as dt
import uuid as uuid_

from sqlalchemy import CheckConstraint
from sqlalchemy.orm import Mapped, mapped_column

from orchestrator.store.tables.base import Base, now


class Worker(Base):
    """One worker process that runs or ran, as long as it reports now and then
    (operations/maintenance/heartbeat.py).
    """

    __tablename__ = "worker"

    uuid: Mapped[uuid_.UUID] = mapped_column(primary_key=True)  # of this run of it
    name: Mapped[str]  # as Celery knows it: check1@host
    hostname: Mapped[str]
    queues: Mapped[str]  # that it reads: check,observe,bulk
    report_interval: Mapped[int]  # seconds; after twice as many of silence it counts as gone
    created_at: Mapped[dt.datetime] = mapped_column(server_default=now)
    updated_at: Mapped[dt.datetime] = mapped_column(server_default=now)


class SweepTurn(Base):
    """When the last sweep began, of whichever worker: one row, so that more workers sweep no more often."""

    __tablename__ = "sweep_turn"

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    begun_at: Mapped[dt.datetime]

    __table_args__ = (CheckConstraint("id = 1", name="only_one"),)
