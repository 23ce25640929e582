"""Threads of provider workers that deliver events to webhooks.

There are two groups of threads: receivers whose last delivery was slow or failed do not delay the others.
Memory is bounded: each thread has one webhook and one delivery.
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

QUICK: Final = 8  # number of threads
SLOW: Final = 8
POLL_SECONDS: Final = 0.25


class WebhookDeliveryThread(threading.Thread):
    """Claims due deliveries and distributes them to threads, until stopped."""

    def __init__(self, courier: WebhookSender, poll_seconds: float = POLL_SECONDS) -> None:
        """Take the sender that claims and delivers."""
        super().__init__(name="couriers", daemon=True)
        self.courier, self.poll_seconds = courier, poll_seconds
        self._stopped = threading.Event()
        self._free = {False: threading.Semaphore(QUICK), True: threading.Semaphore(SLOW)}
        self._threads = ThreadPoolExecutor(QUICK + SLOW, "courier")

    def run(self) -> None:
        """Deliver until stopped."""
        while not self._stopped.wait(self.poll_seconds):
            try:
                for slow in (False, True):
                    self._hand_out(slow=slow)
            except (psycopg.Error, sqlalchemy.exc.SQLAlchemyError) as error:
                log.warning("webhooks_read_failed", error=str(error))
            except Exception:
                log.exception("webhook_thread_error")

    def stop(self) -> None:
        """Start no further deliveries; running deliveries finish."""
        self._stopped.set()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _hand_out(self, *, slow: bool) -> None:
        free, taken = self._free[slow], 0
        while free.acquire(blocking=False):
            taken += 1
        claimed: Sequence[tuple[Claimed, int]] = ()
        try:
            claimed = self.courier.claim(taken, slow=slow)
        finally:
            for _ in range(taken - len(claimed)):
                free.release()
        for one, lease in claimed:
            self._threads.submit(self._serve, one, lease, slow)

    def _serve(self, claimed: Claimed, lease: int, slow: bool) -> None:
        try:
            self.courier.deliver_pending(claimed, lease)
        except Exception:  # the lease expires and the delivery is claimed again
            log.exception("webhook_delivery_error", webhook=str(claimed.uuid))
        finally:
            self._free[slow].release()
