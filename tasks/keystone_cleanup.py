"""A thread beside a worker that calls services: it removes what users gave at Keystone and no stack holds,
and the users of stacks that are gone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

import psycopg
import sqlalchemy.exc

from orchestrator.logs import logger
from orchestrator.operations.keystone.delegated_credentials import CredentialReaper
from orchestrator.operations.keystone.stack_users import StackUserReaper

log = logger()

POLL_SECONDS: Final = 1.0


class Custody(threading.Thread):
    """Looks for what is due until stopped; whatever fails is logged and tried again."""

    def __init__(
        self, custodian: CredentialReaper, keeper: StackUserReaper, poll_seconds: float = POLL_SECONDS
    ) -> None:
        """Take who removes it."""
        super().__init__(name="custody", daemon=True)
        self.custodian, self.keeper, self.poll_seconds = custodian, keeper, poll_seconds
        self._stopped = threading.Event()

    def run(self) -> None:
        """Remove until stopped."""
        while not self._stopped.wait(self.poll_seconds):
            self._once(self.custodian.run)
            self._once(self.keeper.run)

    def _once(self, remove: Callable[[], int]) -> None:
        try:
            remove()
        except (psycopg.Error, sqlalchemy.exc.SQLAlchemyError) as error:
            log.warning("credentials_unreadable", error=str(error))
        except Exception:
            log.exception("custody_broken")

    def stop(self) -> None:
        """Begin with nothing any more."""
        self._stopped.set()
