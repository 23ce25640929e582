"""A thread beside every worker: sweep, observer clock, timeouts, stall audit, purge."""

from __future__ import annotations

import threading

import psycopg

from orchestrator.operations.sweep import Sweep
from orchestrator.telemetry import logger
from tasks.dispatch import Dispatcher

log = logger()


class Tick(threading.Thread):
    """Sweeps every `seconds`; whatever fails is logged and tried again."""

    def __init__(self, sweep: Sweep, dispatcher: Dispatcher, seconds: float) -> None:
        """Take what to run and where its messages go."""
        super().__init__(name="tick", daemon=True)
        self.sweep, self.dispatcher, self.seconds = sweep, dispatcher, seconds
        self._stopped = threading.Event()

    def run(self) -> None:
        """Sweep until stopped."""
        while not self._stopped.wait(self.seconds):
            try:
                self.dispatcher.publish(self.sweep.run())
                self.sweep.purge()
            except psycopg.Error as error:
                log.warning("sweep_failed", error=str(error))
            except Exception:
                log.exception("sweep_broken")

    def stop(self) -> None:
        """Stop before the next sweep."""
        self._stopped.set()
