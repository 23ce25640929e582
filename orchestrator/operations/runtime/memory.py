"""Return of free memory to the operating system.

glibc keeps freed memory in an arena per thread. After a read of hundreds of thousands of rows that is most of
it, in as many arenas as threads have read.
"""

from __future__ import annotations

import ctypes


def release_memory() -> None:
    """Return the free memory of all arenas; it takes milliseconds."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # not in other C libraries
    if trim is not None:
        trim(0)
