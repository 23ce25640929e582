"""State of the broker: reachability and queue lengths."""

from __future__ import annotations

import os
import threading
from collections.abc import Collection, Mapping, Sequence
from typing import Final

import redis
from kombu import Connection
from kombu.exceptions import OperationalError

from tasks.celery_settings import QUEUES
from tasks.fair_queues import KEY_PREFIX, LANES

TIMEOUT_SECONDS: Final = 2.0
UNREACHABLE: Final = (redis.RedisError, OperationalError, OSError)


class BrokerStats:
    """Statistics of a broker, read over a separate connection: the dispatcher's receives no replies."""

    def __init__(self, url: str) -> None:
        """Connect on first use."""
        self.url = url
        self._client: redis.Redis | None = None
        self._pid, self._prefix = 0, ""
        self._lock = threading.Lock()

    def close(self) -> None:
        """Close the connection; the next call reconnects."""
        with self._lock:
            if self._client is not None:
                self._client.connection_pool.disconnect()
                self._client = None

    def depths(self) -> Mapping[str, int]:
        """Return the number of messages in each queue.

        Raises:
            OSError, RedisError: the broker is unreachable or does not answer in time.
        """
        client = self._connected()
        pipeline = client.pipeline(transaction=False)
        for queue in QUEUES:
            pipeline.llen(self._prefix + queue)
            pipeline.hget(f"{self._prefix}{KEY_PREFIX}waiting:{LANES[queue]}", queue)
        counts = [int(count or 0) for count in pipeline.execute()]
        return {queue: sum(counts[2 * index : 2 * index + 2]) for index, queue in enumerate(QUEUES)}

    def waiting_seconds(self, stacks: Collection[str]) -> Mapping[str, float]:
        """Return the age of the oldest waiting message of root stacks, by uuid, if any message waits.

        Earlier messages were delivered or lost. Nothing is known of an unreachable broker.
        """
        try:
            return self._waiting_seconds(sorted(stacks))
        except UNREACHABLE:
            return {}

    def _waiting_seconds(self, stacks: Sequence[str]) -> Mapping[str, float]:
        client, lanes = self._connected(), sorted(set(LANES.values()))
        pipeline = client.pipeline(transaction=False)
        pipeline.time()
        for stack in stacks:
            for lane in lanes:
                pipeline.lindex(f"{self._prefix}{KEY_PREFIX}messages:{lane}:{stack}", 0)
        (seconds, micros), *times = pipeline.execute()
        now, oldest = seconds + micros / 1e6, dict[str, float]()
        for index, enqueued_at in enumerate(times):
            if enqueued_at is not None:
                stack = stacks[index // len(lanes)]
                oldest[stack] = max(oldest.get(stack, 0.0), now - float(enqueued_at))
        return oldest

    def _connected(self) -> redis.Redis:
        """Return the client. kombu reads sockets, TLS and prefixes from the broker's URL."""
        with self._lock:
            if self._client is None or self._pid != os.getpid():
                options: dict[str, object] = {
                    "socket_timeout": TIMEOUT_SECONDS,
                    "socket_connect_timeout": TIMEOUT_SECONDS,
                }
                channel = Connection(self.url, transport_options=options).channel()
                self._prefix = channel.global_keyprefix
                self._client, self._pid = channel.client, os.getpid()
            return self._client
