"""The thread of a provider worker that removes unused delegated credentials and stack users at Keystone."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Final

import psycopg
import sqlalchemy.exc

from orchestrator.logs import logger
from orchestrator.operations.keystone.reaper import Reaper

log = logger()

POLL_SECONDS: Final = 1.0


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
