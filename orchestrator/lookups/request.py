"""The look-ups of an API request.

Validation is a pure pass over the values. During the pass the look-ups that constraints need are only noted,
each once; `answer` then carries them out together. If any of them reports a fault, the pass is repeated and
receives the answers.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Final

from orchestrator.clients.keystone.cloud_session import Cloud
from orchestrator.clients.openstack.cloud import OpenStack
from orchestrator.errors import OrchestratorError
from orchestrator.logs import logger
from orchestrator.lookups.cache import RECENT, Key, LookupCache
from orchestrator.lookups.kinds import LookupFault, can_look_up, look_up

log = logger()

DEADLINE_SECONDS: Final = 10.0  # of all look-ups of a request
MIN_CALL_SECONDS: Final = 0.1
MAX_CONCURRENT: Final = 16
MAX_LOOKUPS: Final = 1_000  # of a request; further values are accepted, and looked up when they are used


class RequestLookups:
    """The look-ups of a request, as its caller."""

    def __init__(
        self,
        cloud: Cloud,
        project_id: str,
        *,
        recent: LookupCache = RECENT,
        deadline_seconds: float = DEADLINE_SECONDS,
        find: Callable[[OpenStack, str, str], str] = look_up,
    ) -> None:
        """Look nothing up yet."""
        self._cloud, self._project_id, self._recent = cloud, project_id, recent
        self._seconds, self._look_up = deadline_seconds, find
        self._faults: dict[Key, str] = {}
        self._noted: dict[Key, None] = {}

    def check(self, kind: str, value: object) -> str | None:
        """Return the fault of a value, None if it is valid or not looked up yet.

        An empty value names no object.
        """
        if value is None or value == "" or isinstance(value, bool) or not can_look_up(kind):
            return None
        key = Key(self._project_id, self._cloud.region, kind, str(value))
        if key not in self._faults and len(self._noted) < MAX_LOOKUPS:
            self._noted[key] = None
        return self._faults.get(key)

    def answer(self) -> bool:
        """Look up the noted values; return whether there are new faults.

        No fault is known of a value whose service does not answer in time, or refuses to answer: it rejects
        the value itself when the resource is created.
        """
        keys = [key for key in self._noted if self._recent.get(key) is None]
        if not keys:
            return False
        ends_at = time.monotonic() + self._seconds
        try:
            self._cloud.session()  # authenticates once, before all threads
        except OrchestratorError as error:
            log.warning("lookups_failed", error=str(error))
            return False
        with_threads = ThreadPoolExecutor(min(MAX_CONCURRENT, len(keys)), thread_name_prefix="lookups")
        futures = {with_threads.submit(self._find, key, ends_at): key for key in keys}
        wait(futures, timeout=max(0.0, ends_at - time.monotonic()))
        with_threads.shutdown(wait=False, cancel_futures=True)
        before = len(self._faults)
        for future, key in futures.items():
            self._report(future, key)
        return len(self._faults) > before

    def _find(self, key: Key, ends_at: float) -> str:
        seconds = max(MIN_CALL_SECONDS, ends_at - time.monotonic())
        cloud = OpenStack(self._cloud, seconds)
        return self._recent.get_or_find(key, partial(self._look_up, cloud, key.kind, key.value), seconds)

    def _report(self, future: Future[str], key: Key) -> None:
        if future.cancelled() or not future.done():
            log.warning("lookup_timed_out", kind=key.kind)
            return
        error = future.exception()
        if isinstance(error, LookupFault):
            self._faults[key] = str(error)
        elif isinstance(error, OrchestratorError):
            log.warning("lookup_failed", kind=key.kind, error=str(error))
        elif error is not None:  # an answer of an unknown form, or a fault of a plugin
            log.error("lookup_failed", kind=key.kind, error=repr(error))
