"""The start of a process: what must happen before its modules are imported.

The packages of Celery's tasks and of the API call `prepare_imports` first, because each worker and each API
process imports about 1,400 modules.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Final

from orchestrator import gc_policy

LIBRARIES: Final = ("structlog", "httpx")  # they import TERMINAL for programs with a terminal, if it is there
TERMINAL: Final = ("rich", "pygments")  # 80 modules


def prepare_imports() -> None:
    """Make the following imports cheaper: collect garbage rarely, and leave out unused libraries.

    structlog and httpx find rich and pygments unavailable, and do without; later imports find them.
    """
    gc_policy.collect_rarely()
    with _unavailable(TERMINAL):
        for library in LIBRARIES:
            import_module(library)


@contextmanager
def _unavailable(names: tuple[str, ...]) -> Iterator[None]:
    """Let the import of modules fail in a block, unless they are imported already."""
    modules: dict[str, Any] = sys.modules  # None: the import raises ModuleNotFoundError
    hidden = [name for name in names if name not in modules]
    modules.update(dict.fromkeys(hidden))
    try:
        yield
    finally:
        for name in hidden:
            del modules[name]
