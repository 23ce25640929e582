"""Threads of provider workers that deliver events to webhooks.

There are two groups of threads, so that receivers whose last delivery was slow or failed do not delay other
receivers. Memory is bounded: each thread holds a single delivery.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import psycopg
import sqlalchemy.exc

from orchestrator.logs import logger
from orchestrator.operations.events.webhook_delivery import WebhookSender
from orchestrator.store.events.webhooks import Claimed

log = logger()

FAST_THREADS: Final = 8
SLOW_THREADS: Final = 8
POLL_SECONDS: Final = 0.25


class WebhookDeliveryThread(threading.Thread):
    """Claims due deliveries and distributes them to threads, until stopped."""

    def __init__(self, sender: WebhookSender, poll_seconds: float = POLL_SECONDS) -> None:
        """Take the sender that claims and delivers."""
        super().__init__(name="webhook-delivery", daemon=True)
        self.sender, self.poll_seconds = sender, poll_seconds
        self._stopped = threading.Event()
        self._free = {False: threading.Semaphore(FAST_THREADS), True: threading.Semaphore(SLOW_THREADS)}
        self._threads = ThreadPoolExecutor(FAST_THREADS + SLOW_THREADS, "webhook")

    def run(self) -> None:
        """Deliver until stopped."""
        while not self._stopped.wait(self.poll_seconds):
            try:
                for slow in (False, True):
                    self._distribute(slow=slow)
            except (psycopg.Error, sqlalchemy.exc.SQLAlchemyError) as error:
                log.warning("webhooks_read_failed", error=str(error))
            except Exception:
                log.exception("webhook_thread_error")

    def stop(self) -> None:
        """Start no further deliveries; running deliveries finish."""
        self._stopped.set()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _distribute(self, *, slow: bool) -> None:
        free, slots = self._free[slow], 0
        while free.acquire(blocking=False):
            slots += 1
        claimed: Sequence[tuple[Claimed, int]] = ()
        try:
            claimed = self.sender.claim(slots, slow=slow)
        finally:
            for _ in range(slots - len(claimed)):
                free.release()
        for delivery, lease in claimed:
            self._threads.submit(self._deliver, delivery, lease, slow)

    def _deliver(self, claimed: Claimed, lease: int, slow: bool) -> None:
        try:
            self.sender.deliver_pending(claimed, lease)
        except Exception:  # the lease expires and the delivery is claimed again
            log.exception("webhook_delivery_error", webhook=str(claimed.uuid))
        finally:
            self._free[slow].release()
