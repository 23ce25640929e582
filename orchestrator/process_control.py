"""The priority of the current process, its rights, and its end with its parent."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Final

PR_SET_DUMPABLE: Final = 4
PR_SET_NO_NEW_PRIVS: Final = 38
LANDLOCK_CREATE_RULESET: Final = 444  # the same number on every architecture
LANDLOCK_RESTRICT_SELF: Final = 446
FILE_RIGHTS: Final = (
    1 << 13
) - 1  # all rights of the first version of Landlock: read, write, execute, create
OPEN_FILES: Final = 16  # more than the process has open: files that it may still open by a descriptor
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


def confine() -> None:
    """Give up for good what a process that only computes does not need: files, processes, privileges.

    No other process of the user can read its memory or environment. Files cannot be opened any more, if the
    kernel has Landlock. On other systems than Linux this has no effect.
    """
    if _prctl is None:
        return
    _prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    _prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    limits = ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_NPROC, 0))
    for kind, most in (*limits, (resource.RLIMIT_NOFILE, OPEN_FILES)):
        resource.setrlimit(kind, (most, most))
    syscall = ctypes.CDLL(None).syscall
    handled = ctypes.c_uint64(FILE_RIGHTS)
    ruleset = syscall(LANDLOCK_CREATE_RULESET, ctypes.byref(handled), ctypes.sizeof(handled), 0)
    if ruleset >= 0:  # without a rule, none of the rights remains
        syscall(LANDLOCK_RESTRICT_SELF, ruleset, 0)
        os.close(ruleset)


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
