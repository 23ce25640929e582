"""Tables of worker processes, and of the last sweep."""

from __future__ import annotations

import datetime as dt
import uuid as uuid_

from sqlalchemy import CheckConstraint
from sqlalchemy.orm import Mapped, mapped_column

from orchestrator.store.tables.base import Base, now


class Worker(Base):
    """A worker process that is running or was, as long as it reports at intervals
    (operations/maintenance/heartbeat.py).
    """

    __tablename__ = "worker"

    uuid: Mapped[uuid_.UUID] = mapped_column(primary_key=True)  # of this run
    name: Mapped[str]  # as in Celery: check1@host
    hostname: Mapped[str]
    queues: Mapped[str]  # the queues that it consumes: check,observe,bulk
    report_interval: Mapped[int]  # seconds; after twice that time of silence it counts as down
    created_at: Mapped[dt.datetime] = mapped_column(server_default=now)
    updated_at: Mapped[dt.datetime] = mapped_column(server_default=now)


class SweepTurn(Base):
    """The start of the last sweep, by any worker: a single row, so that the sweep rate does not grow with the
    workers.
    """

    __tablename__ = "sweep_turn"

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    begun_at: Mapped[dt.datetime]

    __table_args__ = (CheckConstraint("id = 1", name="only_one"),)


class HungProcess(Base):
    """How many processes of a kind the watchdog has ended, with the stack traces of the last one."""

    __tablename__ = "hung_process"

    process: Mapped[str] = mapped_column(primary_key=True)  # api, worker, planner
    ended: Mapped[int]
    last_at: Mapped[dt.datetime]
    trace: Mapped[str]


class Quarantine(Base):
    """Work that was in progress when its process hung (store/maintenance/quarantine.py)."""

    __tablename__ = "quarantine"

    kind: Mapped[str] = mapped_column(primary_key=True)
    object_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    hangs: Mapped[int]
    position: Mapped[str]  # the innermost calls
    last_at: Mapped[dt.datetime] = mapped_column(server_default=now)
