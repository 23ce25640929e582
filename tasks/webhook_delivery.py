"""Threads of provider workers that deliver events to webhooks.

There are two groups of threads, so that receivers whose last delivery was slow or failed do not delay other
receivers. In each group a project has at most a share of the threads, so that its receivers do not delay
other projects. Memory is bounded: each thread holds a single delivery.
"""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final

import psycopg
import sqlalchemy.exc

from orchestrator.logs import logger
from orchestrator.operations.events.webhook_delivery import WebhookSender
from orchestrator.store.events.webhooks import Claimed

log = logger()

FAST_THREADS: Final = 8
SLOW_THREADS: Final = 16
SHARE: Final = 4  # threads of a group that the deliveries of a project may occupy
POLL_SECONDS: Final = 0.25


@dataclass(slots=True)
class _Group:
    """The threads of a group, and the deliveries in progress by project."""

    threads: int
    slow: bool
    busy: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def state(self) -> tuple[int, dict[str, int]]:
        """Return the number of free threads, and the deliveries in progress by project."""
        with self.lock:
            return self.threads - self.busy.total(), dict(self.busy)

    def start(self, project_id: str) -> None:
        """Count a delivery."""
        with self.lock:
            self.busy[project_id] += 1

    def end(self, project_id: str) -> None:
        """Release the thread of a delivery."""
        with self.lock:
            self.busy[project_id] -= 1
            if not self.busy[project_id]:
                del self.busy[project_id]


class WebhookDeliveryThread(threading.Thread):
    """Claims due deliveries and distributes them to threads, until stopped."""

    def __init__(self, sender: WebhookSender, poll_seconds: float = POLL_SECONDS) -> None:
        """Take the sender that claims and delivers."""
        super().__init__(name="webhook-delivery", daemon=True)
        self.sender, self.poll_seconds = sender, poll_seconds
        self._stopped = threading.Event()
        self._groups = (_Group(FAST_THREADS, slow=False), _Group(SLOW_THREADS, slow=True))
        self._threads = ThreadPoolExecutor(FAST_THREADS + SLOW_THREADS, "webhook")

    def run(self) -> None:
        """Deliver until stopped."""
        while not self._stopped.wait(self.poll_seconds):
            try:
                if self.sender.any_due():
                    for group in self._groups:
                        self._distribute(group)
            except (psycopg.Error, sqlalchemy.exc.SQLAlchemyError) as error:
                log.warning("webhooks_read_failed", error=str(error))
            except Exception:
                log.exception("webhook_thread_error")

    def stop(self) -> None:
        """Start no further deliveries; running deliveries finish."""
        self._stopped.set()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _distribute(self, group: _Group) -> None:
        free, busy = group.state()  # only this thread starts deliveries: none of these threads is taken
        for delivery, lease in self.sender.claim(free, slow=group.slow, share=SHARE, busy=busy):
            group.start(delivery.project_id)
            self._threads.submit(self._deliver, delivery, lease, group)

    def _deliver(self, claimed: Claimed, lease: int, group: _Group) -> None:
        try:
            self.sender.deliver_pending(claimed, lease)
        except Exception:  # the lease expires and the delivery is claimed again
            log.exception("webhook_delivery_error", webhook=str(claimed.uuid))
        finally:
            group.end(claimed.project_id)
