"""The threads for requests run before the first request."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

from api.serving.gunicorn_worker import Worker


def test_all_threads_run_before_the_first_request() -> None:
    before = set(threading.enumerate())
    worker: Any = SimpleNamespace(cfg=SimpleNamespace(threads=5))
    pool = Worker.get_thread_pool(worker)
    try:
        assert len(set(threading.enumerate()) - before) == 5
        pool.submit(int).result(10)
        assert len(set(threading.enumerate()) - before) == 5
    finally:
        pool.shutdown()
