"""The priority of the current process, and its end with its parent."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Callable
from typing import Final

AUTOGROUP: Final = "/proc/self/autogroup"
PR_SET_PDEATHSIG: Final = 1
_prctl: Callable[..., int] | None = ctypes.CDLL(None).prctl if sys.platform == "linux" else None


def yield_processor(niceness: int, *, new_session: bool = False) -> None:
    """Yield the processor to other processes: 0 not at all, 19 always.

    With autogroups, Linux first divides the processor among sessions; the niceness of a process only counts
    within its session. Therefore the session gets the niceness, too. A process that shares its session with
    processes of a higher priority needs a `new_session`, without the signals of the terminal.
    """
    if new_session:
        with contextlib.suppress(PermissionError):  # it leads its process group already
            os.setsid()
    os.nice(niceness)
    if os.getsid(0) == os.getpid():
        with contextlib.suppress(OSError), open(AUTOGROUP, "w") as autogroup:  # noqa: PTH123 - avoids an import
            autogroup.write(str(niceness))


def die_with(parent: int, number: signal.Signals = signal.SIGKILL) -> None:
    """Request the signal `number` for the death of the process `parent`; end if it is dead already.

    On other systems than Linux this has no effect.
    """
    if _prctl is not None:
        _prctl(PR_SET_PDEATHSIG, int(number), 0, 0, 0)
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
