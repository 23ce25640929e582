"""The periodic threads of workers.

Every worker has one for sweep, observation schedule, timeouts, stall audit, purge and heartbeat. A provider
worker has one that removes unused delegated credentials and stack users at Keystone.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Sequence
from typing import Any, Final

import psycopg
import sqlalchemy.exc

from orchestrator.logs import logger
from orchestrator.operations.keystone.reaper import Reaper
from orchestrator.operations.maintenance.heartbeat import Heartbeat
from orchestrator.operations.maintenance.sweep import Sweep
from tasks.fair_queues import WorkerReport
from tasks.publisher import Dispatcher

log = logger()

POLL_SECONDS: Final = 1.0  # between two removals at Keystone
STOP_SECONDS: Final = 2.0  # longest wait for a running sweep at shutdown


def touch_ready_file() -> None:
    """Update the modification time of the file in ORCHESTRATOR_READY_PATH; it exists if the worker is ready.

    Health checks use it as a heartbeat.
    """
    path = os.environ.get("ORCHESTRATOR_READY_PATH")
    if path:
        with contextlib.suppress(OSError):
            os.utime(path)


class PeriodicThread(threading.Thread):
    """Sweeps every `seconds`; errors are logged and the sweep retried."""

    def __init__(
        self,
        sweep: Sweep,
        reporting: Heartbeat,
        dispatcher: Dispatcher,
        seconds: float,
        worker: WorkerReport | None = None,
    ) -> None:
        """Take the sweep, the heartbeat, the dispatcher of their messages, and the report for fair queues."""
        super().__init__(name="periodic", daemon=True)
        self.sweep, self.reporting, self.dispatcher, self.seconds = sweep, reporting, dispatcher, seconds
        self.worker = worker
        self._stopped = threading.Event()

    def run(self) -> None:
        """Sweep until stopped."""
        while not self._stopped.is_set():
            touch_ready_file()  # also during an outage of the database, which a restart would not end
            try:
                self.reporting.tick()
                self.dispatcher.publish(self.sweep.run(), report=self.worker)
                self.sweep.purge()
            except psycopg.Error as error:
                log.warning("sweep_failed", error=str(error))
            except Exception:
                log.exception("sweep_error")
            self._stopped.wait(self.seconds)
        self._sign_off()

    def stopping(self) -> None:
        """Stop before the next sweep."""
        self._stopped.set()

    def stop(self) -> None:
        """Stop before the next sweep; wait at most STOP_SECONDS for the current sweep."""
        self.stopping()
        self.join(STOP_SECONDS)

    def _sign_off(self) -> None:
        try:
            self.reporting.end()
        except psycopg.Error as error:
            log.warning("worker_sign_off_failed", error=str(error))


class KeystoneCleanupThread(threading.Thread):
    """Runs reapers until stopped; failures are logged and retried."""

    def __init__(self, reapers: Sequence[Reaper[Any]], poll_seconds: float = POLL_SECONDS) -> None:
        """Run each of `reapers` every `poll_seconds`."""
        super().__init__(name="custody", daemon=True)
        self.reapers, self.poll_seconds = reapers, poll_seconds
        self._stopped = threading.Event()

    def run(self) -> None:
        """Remove objects until stopped."""
        while not self._stopped.wait(self.poll_seconds):
            for reaper in self.reapers:
                self._run_once(reaper)

    def _run_once(self, reaper: Reaper[Any]) -> None:
        try:
            reaper.run()
        except (psycopg.Error, sqlalchemy.exc.SQLAlchemyError) as error:
            log.warning("credentials_read_failed", error=str(error))
        except Exception:
            log.exception("keystone_cleanup_error")

    def stop(self) -> None:
        """Stop after the current removal."""
        self._stopped.set()
