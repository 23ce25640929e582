"""Python's collector of reference cycles, told what our processes are like.

What reference counting does not free is little: exceptions with their frames, a library's own cycles. Looking
for it walks everything that is there, over and over, where a template has a million parts.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

GARBAGE: Final = 20_000  # objects made before a look: dozens of checks, where Python looks at each


def keep_loaded() -> None:
    """Take what is there now for what stays as long as the process, and look rarely at the rest."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE, 20, 20)


def rest() -> None:
    """Never look, in a process that ends with what it is there for. Its memory is limited all the same."""
    gc.disable()


@contextmanager
def resting() -> Iterator[None]:
    """Do not look while something large is built that holds no cycles."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
