"""The fields of watched stacks: kept current by a thread per process.

A field is read completely once, and again after a pause. The thread applies the events of its tree, which
the event hub distributes four times a second. A viewer costs the bytes that have changed since its
last request, and no query. A field without requests is dropped.

Reads of a million resources take seconds, so few threads beside this one read fields again. The events
meanwhile are applied at once, and once more to the result, which may be older.
"""

from __future__ import annotations

import threading
import time
from array import array
from typing import Final

import psycopg
import sqlalchemy.exc

from api.dependencies import app_state, dependencies
from api.streaming.event_stream import hub
from api.streaming.followed_field import FollowedField, Names, Reload
from api.streaming.hub import EventHub, Scope, is_ending
from orchestrator.engine.pictures.field import DRIFT, STATE_BITS, STATES
from orchestrator.logs import logger
from orchestrator.operations.pictures.field import FieldBuilder
from orchestrator.operations.runtime.memory import release_memory
from orchestrator.rate_errors import TooManyStreams
from orchestrator.store.connections.database import Database
from orchestrator.store.pictures import field as stored
from orchestrator.store.pictures.field import Db
from orchestrator.store.stacks.stacks import StackRow

TICK_SECONDS: Final = 0.25
IDLE_SECONDS: Final = 60.0  # a field that is not requested is dropped afterwards
MAX_RESOURCES: Final = 3_000_000  # in all fields of a process; the longest idle are dropped first
RELOAD_SECONDS: Final = 10.0  # between complete reads, and RELOAD_FACTOR times their duration
RELOAD_FACTOR: Final = 100
SOON_SECONDS: Final = 1.0  # after resources have appeared or disappeared, and SOON_FACTOR times the duration
SOON_FACTOR: Final = 10
DRIFT_SECONDS: Final = 2.0
DRAFT_SECONDS: Final = 5.0  # maximum age of a first picture
MAX_RELOADS: Final = 2  # fields that are read again at the same time
ALL_LEVELS: Final = 1_000
_DELETING, _DELETED = STATES.index("deleting"), STATES.index("deleted")

log = logger()


class Fields:
    """All watched fields of this process."""

    def __init__(self, database: Database, events: EventHub, tick_seconds: float = TICK_SECONDS) -> None:
        """Take the database and the hub with its events."""
        self._database, self._events, self._tick = database, events, tick_seconds
        self._followed: dict[int, FollowedField] = {}
        self._lock = threading.Lock()
        self._arrived = threading.Event()
        self._thread: threading.Thread | None = None

    def follow(self, stack: StackRow, *, takes_draft: bool = False) -> FollowedField:
        """Return the field of a stack, current within two ticks. The first request reads it; with
        `takes_draft` only the first picture of a large field, which the next request without it completes.
        """
        followed = self._touch(stack)
        if takes_draft and followed.is_draft and followed.loading.locked():
            return followed
        if self._is_due(followed, takes_draft):
            with followed.loading:
                if followed.viewer is None or self._is_due(followed, takes_draft):
                    self._load(followed, takes_draft=takes_draft)
        return followed

    def _is_due(self, followed: FollowedField, takes_draft: bool) -> bool:
        """Whether a request waits for a complete read."""
        now = time.monotonic()
        if followed.is_draft:
            return not takes_draft or now > followed.draft_until
        return followed.current is None or (
            followed.viewer is None and now > followed.reload_at - RELOAD_SECONDS + SOON_SECONDS
        )

    def close(self) -> None:
        """Drop all fields, and wait for the end of the thread."""
        with self._lock:
            reloads = [item.reload.thread for item in self._followed.values() if item.reload is not None]
            thread = self._thread
            for followed in list(self._followed.values()):
                self._drop(followed)
        for each in reloads if thread is None else [*reloads, thread]:
            each.join()

    def _touch(self, stack: StackRow) -> FollowedField:
        """Return the field of a stack, which may not be read yet."""
        with self._lock:
            followed = self._followed.get(stack.id)
            if followed is None:
                followed = self._followed[stack.id] = self._begin(stack)
            followed.touched_at = time.monotonic()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="fields", daemon=True)
                self._thread.start()
            return followed

    def _begin(self, stack: StackRow) -> FollowedField:
        viewer = None
        try:
            viewer = self._events.join(Scope(stack.project_id, ALL_LEVELS, stack), -1, self._arrived)
        except TooManyStreams:
            log.info("field_without_events", stack=str(stack.uuid))
        return FollowedField(stack, FieldBuilder(self._database, stack), viewer, time.monotonic())

    def _run(self) -> None:
        db: Db | None = None  # of this thread
        try:
            while every := self._watched():
                if db is None or db.closed:
                    db = self._connect()
                if db is not None:
                    self._advance_all(db, every)
        finally:
            if db is not None:
                db.close()

    def _watched(self) -> list[FollowedField]:
        """Wait for events or the next tick; return the fields, none if the thread ends."""
        self._arrived.wait(self._tick)
        self._arrived.clear()
        with self._lock:
            self._drop_idle()
            if not self._followed or is_ending():
                self._thread = None
                return []
            return list(self._followed.values())

    def _connect(self) -> Db | None:
        try:
            return self._database.connect(replan=True)
        except psycopg.Error as error:
            log.warning("field_read_failed", error=str(error))
            with self._lock:
                for followed in list(self._followed.values()):
                    self._drop(followed)
            return None

    def _advance_all(self, db: Db, every: list[FollowedField]) -> None:
        for followed in every:
            try:
                self._advance(db, followed)
            except (sqlalchemy.exc.SQLAlchemyError, psycopg.Error) as error:
                log.warning("field_read_failed", error=str(error))
                self._drop(followed)  # the next request reads it again
            except Exception:
                log.exception("field_error")
                self._drop(followed)

    def _drop_idle(self) -> None:
        oldest, now = sorted(self._followed.values(), key=lambda item: item.touched_at), time.monotonic()
        size = sum(len(item.current.ids) for item in oldest if item.current is not None)
        for item in oldest:
            is_surplus = size > MAX_RESOURCES and item is not oldest[-1]
            if now - item.touched_at > IDLE_SECONDS or is_surplus:
                size -= len(item.current.ids) if item.current is not None else 0
                self._drop(item)

    def _drop(self, followed: FollowedField) -> None:
        self._followed.pop(followed.stack.id, None)
        if followed.viewer is not None:
            self._events.leave(followed.viewer)

    def _load(self, followed: FollowedField, *, takes_draft: bool = False) -> None:
        """Read a field completely, or its first picture. After a first picture, only the rest is read, if no
        event was missed since then.
        """
        begun, announced, builder = time.monotonic(), followed.announced, followed.builder
        is_behind = followed.viewer is not None and followed.viewer.behind
        if followed.viewer is not None and is_behind:
            self._events.resume(followed.viewer)
        if followed.viewer is None or is_behind or begun > followed.draft_until:
            builder.discard_draft()
        fresh = builder.build(rearranges=announced != followed.shown, takes_draft=takes_draft)
        if followed.arrangement is not None and followed.arrangement.is_grouped:
            builder.arrangement.groups(self._database)
        now = time.monotonic()
        followed.seconds, followed.draft_until = now - begun, now + DRAFT_SECONDS
        followed.reload_at = now + max(RELOAD_SECONDS, RELOAD_FACTOR * followed.seconds)
        followed.shown = announced
        if followed.announced != announced:
            self._set_soon(followed)
        with followed.lock:
            before, followed.arrangement = followed.current, builder.arrangement
            followed.drifted = builder.drifted
            if before is not None and before.order == fresh.order:
                followed.record(before.replace_states(bytes(fresh.states)))
            else:
                followed.current = fresh
                followed.changes.clear()
                followed.leaving.clear()
        if not fresh.is_draft:
            release_memory()

    def _soon(self, followed: FollowedField) -> None:
        """Read a field again soon, because resources have appeared or disappeared."""
        followed.announced += 1
        self._set_soon(followed)

    def _set_soon(self, followed: FollowedField) -> None:
        at = time.monotonic() + max(SOON_SECONDS, SOON_FACTOR * followed.seconds)
        followed.reload_at = min(followed.reload_at, at)

    def _advance(self, db: Db, followed: FollowedField) -> None:
        """Apply the events since the last tick."""
        viewer, now = followed.viewer, time.monotonic()
        if followed.current is None or followed.is_draft:
            return  # the events are applied after the first complete read
        if followed.failed:
            self._drop(followed)
            return
        names = self._names(followed)
        if (reload := followed.reload) is not None and not reload.thread.is_alive():
            names.add(reload.meanwhile)
            followed.reload = None
        elif reload is not None:
            reload.meanwhile.add(names)
        elif now > followed.reload_at or (viewer is not None and viewer.behind):
            self._begin_reload(followed)
        if names.changed:
            self._apply(followed, stored.changed(db, names.changed), names.deleted)
        if now > followed.drift_at:
            followed.drift_at = now + DRIFT_SECONDS
            self._apply_drift(followed, stored.drifted(db, followed.stack))

    def _names(self, followed: FollowedField) -> Names:
        """Return the resources with events since the last tick."""
        items = [] if followed.viewer is None else followed.viewer.take(0)
        if any(row.physical_id == str(stack.uuid) for row, stack in items):
            self._soon(followed)  # an action of a stack begins or ends
        ended = ("DELETE", "COMPLETE")
        return Names(
            {(row.stack_id, row.resource_name) for row, _ in items},
            {(row.stack_id, row.resource_name) for row, _ in items if (row.action, row.status) == ended},
        )

    def _begin_reload(self, followed: FollowedField) -> None:
        """Read a field again in another thread, later if too many are read."""
        with self._lock:
            reading = sum(item.reload is not None for item in self._followed.values())
            if reading < MAX_RELOADS:
                thread = threading.Thread(
                    target=self._reload, args=(followed,), name="field-reload", daemon=True
                )
                followed.reload = Reload(thread)
                thread.start()

    def _reload(self, followed: FollowedField) -> None:
        try:
            with followed.loading:
                self._load(followed)
        except (sqlalchemy.exc.SQLAlchemyError, psycopg.Error) as error:
            log.warning("field_read_failed", error=str(error))
            followed.failed = True
        except Exception:
            log.exception("field_error")
            followed.failed = True

    def _apply(
        self,
        followed: FollowedField,
        rows: list[tuple[int, str, int, int]],
        ended: set[tuple[int, str]],
    ) -> None:
        positions = array("i")
        with followed.lock:
            current = followed.current
            assert current is not None
            for stack_id, name, id_, state in rows:
                position = current.position(id_)
                if position is None:
                    self._soon(followed)
                    continue
                if state == _DELETING:
                    followed.leaving[stack_id, name] = position
                if current.change(position, state | current.states[position] & DRIFT):
                    positions.append(position)
            for key in ended - {(stack_id, name) for stack_id, name, *_ in rows}:
                position = followed.leaving.pop(key, None)
                if position is None:
                    self._soon(followed)
                elif current.change(position, _DELETED):
                    positions.append(position)
            followed.record(list(positions))

    def _apply_drift(self, followed: FollowedField, drifted: frozenset[int]) -> None:
        with followed.lock:
            current, positions = followed.current, []
            assert current is not None
            for id_ in drifted ^ followed.drifted:
                position = current.position(id_)
                if position is None:
                    continue
                state = current.states[position] & STATE_BITS | (DRIFT if id_ in drifted else 0)
                if current.change(position, state):
                    positions.append(position)
            followed.record(positions)
            followed.drifted = drifted


def fields() -> Fields:
    """Return the fields of the application."""
    return app_state().part(Fields, lambda: Fields(dependencies().database, hub()))
