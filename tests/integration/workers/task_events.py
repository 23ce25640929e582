"""The events of Celery's workers, received without a gap."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from celery import Celery

from tasks.celery_settings import celery_settings


class TaskEvents:
    """Calls handlers with the events of workers, in a thread."""

    def __init__(self, broker_url: str, handlers: Mapping[str, Callable[[dict[str, Any]], object]]) -> None:
        """Subscribe; the events from then on are received."""
        self._app = Celery("watch", set_as_current=False)
        self._app.conf.update(celery_settings(broker_url))
        self._connection = self._app.connection_for_read()
        self._receiver = self._app.events.Receiver(self._connection, handlers=handlers)
        subscribed = threading.Event()
        self._receiver.on_consume_ready = lambda *_args, **_named: subscribed.set()
        # A capture with a time limit would end after it without events, and lose those before the next one.
        self._thread = threading.Thread(target=lambda: self._receiver.capture(wakeup=False), daemon=True)
        self._thread.start()
        assert subscribed.wait(10)

    def close(self) -> None:
        """Stop receiving."""
        self._receiver.should_stop = True
        self._thread.join(10)
        self._connection.release()
        self._app.close()
