"""Threads beside a worker that calls services: they deliver to webhooks.

Two groups of them: receivers that were slow or failed the last time wait for each other, not for those that
answer at once. What they hold is bounded: each thread has one webhook and one delivery of it.
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

QUICK: Final = 8  # threads
SLOW: Final = 8
POLL_SECONDS: Final = 0.25


class WebhookDeliveryThread(threading.Thread):
    """Takes what is due and hands it to threads, until stopped."""

    def __init__(self, courier: WebhookSender, poll_seconds: float = POLL_SECONDS) -> None:
        """Take who delivers."""
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
        """Begin no delivery any more; those that were begun end by themselves."""
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
        except Exception:  # its lease ends, and it is taken again
            log.exception("webhook_delivery_error", webhook=str(claimed.uuid))
        finally:
            self._free[slow].release()
