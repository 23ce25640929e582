"""Thread of every worker: sweep, observation schedule, timeouts, stall audit, purge, heartbeat."""

from __future__ import annotations

import threading

import psycopg

from orchestrator.logs import logger
from orchestrator.operations.maintenance.heartbeat import Heartbeat
from orchestrator.operations.maintenance.sweep import Sweep
from tasks.publisher import Dispatcher

log = logger()

STOP_SECONDS = 2.0  # longest wait for a running sweep at shutdown


class PeriodicThread(threading.Thread):
    """Sweeps every `seconds`; errors are logged and the sweep retried."""

    def __init__(self, sweep: Sweep, reporting: Heartbeat, dispatcher: Dispatcher, seconds: float) -> None:
        """Take the sweep, the heartbeat, and the dispatcher of their messages."""
        super().__init__(name="periodic", daemon=True)
        self.sweep, self.reporting, self.dispatcher, self.seconds = sweep, reporting, dispatcher, seconds
        self._stopped = threading.Event()

    def run(self) -> None:
        """Sweep until stopped."""
        while not self._stopped.is_set():
            try:
                self.reporting.tick()
                self.dispatcher.publish(self.sweep.run())
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
