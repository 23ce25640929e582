"""The thread of provider workers that receives OpenStack's notifications, and notes the objects they name.

Memory is bounded: objects are kept by project until the next write, each once. What does not fit is
dropped: the observation finds it in its next round.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final

import psycopg

from orchestrator import metrics
from orchestrator.config import Settings
from orchestrator.engine.messages import Message
from orchestrator.logs import logger
from orchestrator.operations.observation import notified
from orchestrator.store.connections.database import open_database

log = logger()

WRITE_SECONDS: Final = 0.1  # between two writes
MAX_IDS: Final = 1_000  # of a project, between two writes
MAX_PROJECTS: Final = 200

Listener = Any  # of oslo.messaging
Note = Callable[[str, Sequence[str]], Sequence[Message]]  # returns messages to be sent


class PendingObjects:
    """Objects that are to be noted, by project."""

    def __init__(self) -> None:
        """Start with none."""
        self._ids: dict[str, dict[str, None]] = {}
        self._lock = threading.Lock()
        self.dropped = 0

    def add(self, project_id: str, ids: Iterable[str]) -> None:
        """Add objects of a project, as far as there is room."""
        with self._lock:
            if project_id not in self._ids and len(self._ids) >= MAX_PROJECTS:
                self.dropped += 1
                return
            mine = self._ids.setdefault(project_id, {})
            for id_ in ids:
                if id_ in mine or len(mine) < MAX_IDS:
                    mine[id_] = None
                else:
                    self.dropped += 1

    def take_dropped(self) -> int:
        """Return the number of dropped objects since the last call; a project without room counts once."""
        with self._lock:
            dropped, self.dropped = self.dropped, 0
        return dropped

    def take(self) -> dict[str, list[str]]:
        """Return all objects, and forget them."""
        with self._lock:
            taken, self._ids = self._ids, {}
        return {project_id: list(ids) for project_id, ids in taken.items()}


class NotificationThread(threading.Thread):
    """Starts the listeners, and writes what they receive, until stopped."""

    def __init__(
        self,
        listeners: Sequence[Callable[[Callable[[str, Iterable[str]], None]], Listener]],
        note: Note,
        publish: Callable[[Sequence[Message]], None],
    ) -> None:
        """`listeners` make a listener each, for a function that takes projects and ids."""
        super().__init__(name="notifications", daemon=True)
        self.pending = PendingObjects()
        self._makers, self._note, self._publish = listeners, note, publish
        self._stopped = threading.Event()
        self._listeners: list[Listener] = []

    def run(self) -> None:
        """Receive and write until stopped."""
        self._start_listeners()
        while not self._stopped.wait(WRITE_SECONDS):
            for project_id, ids in self.pending.take().items():
                self._write(project_id, ids)
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
    if not urls or not settings.observation_interval_seconds:
        return None
    from orchestrator.clients.openstack.notifications import listener  # noqa: PLC0415 - an extra

    topics = [topic.strip() for topic in settings.notifications_topics.split(",") if topic.strip()]
    database = open_database(settings, "orchestrator-notifications")

    def note(project_id: str, ids: Sequence[str]) -> Sequence[Message]:
        with database.borrow() as db:
            return notified.note(
                db, project_id, ids, settings.region_name, settings.observation_min_interval_seconds
            )

    return NotificationThread([partial(listener, url, topics) for url in urls], note, publish)
