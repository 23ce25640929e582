"""The thread of provider workers that receives OpenStack's notifications, and notes the objects they name.

Memory is bounded: objects are kept by project until the next write, each once. What does not fit is
dropped: the observation finds it in its next round. Projects without stacks are left out before the database
is asked, and the writes of a project take at most a twentieth of the time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

import psycopg

from orchestrator import metrics
from orchestrator.clients.openstack.notifications import Named, Received
from orchestrator.config import Settings
from orchestrator.engine.messages import Message
from orchestrator.engine.observation.rounds import MIN_IDLE_SHARE
from orchestrator.logs import logger
from orchestrator.operations.observation import notified
from orchestrator.store.connections.database import open_database
from orchestrator.store.observation import notices

log = logger()

TOPICS: Final = ("notifications",)
WRITE_SECONDS: Final = 0.1  # between two writes
MAX_IDS: Final = 1_000  # of a project, between two writes
MAX_PROJECTS: Final = 200
MAX_TAKEN: Final = 10_000  # objects whose time is known
REPEATED_SECONDS: Final = 0.5  # within which notifications of an object are combined
PROJECTS_SECONDS: Final = 5.0  # until the projects with stacks are read again

Listener = Any  # of oslo.messaging
Note = Callable[[str, Sequence[str]], Sequence[Message]]  # returns messages to be sent


class _Objects:
    """Objects of a project, those of urgent events apart."""

    __slots__ = ("others", "urgent")

    def __init__(self) -> None:
        self.urgent: dict[str, None] = {}
        self.others: dict[str, None] = {}

    def add(self, id_: str, *, urgent: bool) -> bool:
        """Add an object; return whether an object was dropped for lack of room."""
        if id_ in self.urgent:
            return False
        if urgent:
            self.others.pop(id_, None)
        elif id_ in self.others:
            return False
        full = len(self.urgent) + len(self.others) >= MAX_IDS
        if full and urgent and self.others:
            self.others.popitem()
        elif full:
            return True
        (self.urgent if urgent else self.others)[id_] = None
        return full


class PendingObjects:
    """Objects that are to be noted, by project."""

    def __init__(self) -> None:
        """Start with none."""
        self.projects: Collection[str] | None = None  # with stacks; None: not known yet
        self.received = False  # anything since it was set to False
        self._objects: dict[str, _Objects] = {}
        self._taken_at: dict[tuple[str, str], float] = {}
        self._not_before: dict[str, float] = {}
        self._lock = threading.Lock()
        self.dropped = 0

    def add(self, named: Named) -> None:
        """Add objects of a project, as far as there is room. Projects without stacks have none."""
        self.received = True
        project_id = named.project_id
        if self.projects is not None and project_id not in self.projects:
            return
        with self._lock:
            if project_id not in self._objects and len(self._objects) >= MAX_PROJECTS:
                self.dropped += 1
                return
            mine = self._objects.setdefault(project_id, _Objects())
            for id_ in named.ids:
                self.dropped += mine.add(id_, urgent=named.urgent)

    def take_dropped(self) -> int:
        """Return the number of dropped objects since the last call; a project without room counts once."""
        with self._lock:
            dropped, self.dropped = self.dropped, 0
        return dropped

    def take(self, now: float) -> dict[str, list[str]]:
        """Return the objects that are due, urgent objects first, and forget them. An object that was
        taken a moment ago stays: its repeated notifications are combined.
        """
        if len(self._taken_at) > MAX_TAKEN:
            oldest = now - REPEATED_SECONDS
            self._taken_at = {key: at for key, at in self._taken_at.items() if at > oldest}
        taken = {}
        with self._lock:
            for project_id, mine in list(self._objects.items()):
                if self._not_before.get(project_id, now) > now:
                    continue
                due = [id_ for id_ in (*mine.urgent, *mine.others) if self._is_due(project_id, id_, now)]
                for id_ in due:
                    mine.urgent.pop(id_, None)
                    mine.others.pop(id_, None)
                    self._taken_at[project_id, id_] = now
                if not (mine.urgent or mine.others):
                    del self._objects[project_id]
                if due:
                    taken[project_id] = due
        return taken

    def pause(self, project_id: str, until: float) -> None:
        """Take no objects of a project before a time."""
        if len(self._not_before) >= MAX_PROJECTS:
            self._not_before.clear()
        self._not_before[project_id] = until

    def _is_due(self, project_id: str, id_: str, now: float) -> bool:
        return now - self._taken_at.get((project_id, id_), -REPEATED_SECONDS) >= REPEATED_SECONDS


class NotificationThread(threading.Thread):
    """Starts the listeners, and writes what they receive, until stopped."""

    def __init__(
        self,
        listeners: Sequence[Callable[[Received], Listener]],
        note: Note,
        publish: Callable[[Sequence[Message]], None],
        projects: Callable[[], Collection[str]],
    ) -> None:
        """`listeners` make a listener each, for a function that takes named objects. `projects` reads the
        projects with stacks.
        """
        super().__init__(name="notifications", daemon=True)
        self.pending = PendingObjects()
        self._makers, self._note, self._publish, self._projects = listeners, note, publish, projects
        self._projects_at = -PROJECTS_SECONDS
        self._stopped = threading.Event()
        self._listeners: list[Listener] = []

    def run(self) -> None:
        """Receive and write until stopped."""
        self._start_listeners()
        while not self._stopped.wait(WRITE_SECONDS):
            self._read_projects()
            for project_id, ids in self.pending.take(time.monotonic()).items():
                started = time.monotonic()
                self._write(project_id, ids)
                ended = time.monotonic()
                self.pending.pause(project_id, ended + MIN_IDLE_SHARE * (ended - started))
            metrics.count_notified("broker", "dropped", self.pending.take_dropped())
        for listener in self._listeners:
            listener.stop()

    def stop(self) -> None:
        """End the thread soon."""
        self._stopped.set()

    def _start_listeners(self) -> None:
        for make in self._makers:
            try:
                listener = make(self.pending.add)
                listener.start()
            except Exception as error:  # of a broker's driver; it reconnects by itself later
                log.error("notifications_unavailable", error=type(error).__name__)
            else:
                self._listeners.append(listener)

    def _read_projects(self) -> None:
        now = time.monotonic()
        if not self.pending.received or now - self._projects_at < PROJECTS_SECONDS:
            return
        self.pending.received, self._projects_at = False, now
        with suppress(psycopg.Error):  # the known projects stay
            self.pending.projects = frozenset(self._projects())

    def _write(self, project_id: str, ids: Sequence[str]) -> None:
        result = "failed"
        try:
            self._publish(self._note(project_id, ids))
            result = "noted"
        except psycopg.Error as error:
            log.warning("notifications_not_noted", error=str(error))
        except Exception:
            log.exception("notification_error")
        metrics.count_notified("broker", result, len(ids))


def notification_thread(
    settings: Settings, publish: Callable[[Sequence[Message]], None]
) -> NotificationThread | None:
    """Return the thread for the brokers of the settings, None without any."""
    urls = settings.notifications_url.get_secret_value().split() if settings.notifications_url else []
    if not urls or not settings.observation:
        return None
    from orchestrator.clients.openstack.notifications import listener  # noqa: PLC0415 - an extra

    database = open_database(settings, "orchestrator-notifications")

    def note(project_id: str, ids: Sequence[str]) -> Sequence[Message]:
        with database.borrow() as db:
            return notified.note(db, project_id, ids, settings.region_name)

    def projects() -> Collection[str]:
        with database.borrow() as db:
            return notices.projects(db, settings.region_name)

    return NotificationThread([partial(listener, url, TOPICS) for url in urls], note, publish, projects)
