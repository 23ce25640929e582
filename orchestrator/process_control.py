"""The priority of the current process, and its end with its parent."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Final

AUTOGROUP: Final = "/proc/self/autogroup"
PR_SET_PDEATHSIG: Final = 1
PR_SET_CHILD_SUBREAPER: Final = 36
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


@contextlib.contextmanager
def adopting() -> Iterator[None]:
    """Become the parent of descendants whose own parent ends in a block, instead of the init process.

    On other systems than Linux this has no effect.
    """
    if _prctl is None:
        yield
        return
    _prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        _prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def show_command(argv: Sequence[str]) -> None:
    """Show `argv` as the command line of this process, in `ps` and `/proc`; Linux only.

    The text is written over the memory of the original arguments and environment, which adjoin. It is cut if
    they are shorter. The C library uses copies of the variables afterwards.
    """
    with open("/proc/self/stat") as stat:  # noqa: PTH123 - as above
        fields = stat.read().rpartition(")")[2].split()
    first_argument, *_, last_variable = map(int, fields[45:49])  # arg_start, arg_end, env_start, env_end
    room = last_variable - first_argument - 1
    if not first_argument or room <= 0:
        return  # not permitted
    os.environ.update(os.environ.copy())
    text = "\0".join(argv).encode(errors="surrogateescape").replace(b"\0", b" ")[:room]
    ctypes.memmove(first_argument, text.ljust(room + 1, b"\0"), room + 1)
