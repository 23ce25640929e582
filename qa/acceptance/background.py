"""Work in a thread during a block."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def working(work: Callable[[threading.Event], None]) -> Iterator[None]:
    """Run `work` during the block; its event is set at the end of the block, which awaits it."""
    over = threading.Event()
    thread = threading.Thread(target=work, args=(over,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
