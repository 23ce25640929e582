"""Settings of Python's cyclic garbage collector.

Reference counting frees almost everything here; only exceptions with their frames and cycles inside libraries
remain. A collection walks all objects, which is expensive while a template with a million resources is
loaded.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

THRESHOLD: Final = 20_000  # allocations between collections: dozens of checks


def collect_rarely() -> None:
    """Collect rarely from now on.

    Called before the imports of a process: modules live as long as the process, and with Python's default a
    tenth of the time to import them is spent on collections.
    """
    gc.set_threshold(THRESHOLD, 20, 20)


def freeze_loaded_objects() -> None:
    """Exempt all existing objects from collection, and collect the rest rarely."""
    gc.collect()
    gc.freeze()
    collect_rarely()


def disable_collection() -> None:
    """Disable collection in a short-lived process, whose memory is limited anyway."""
    gc.disable()


@contextmanager
def collection_paused() -> Iterator[None]:
    """Pause collection while a large structure without cycles is built."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
