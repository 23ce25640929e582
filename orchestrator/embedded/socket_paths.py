"""Short paths for unix sockets: the kernel allows some hundred characters, and directories can be longer."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

PREFIX = "orchestrator-"
MAX_BYTES = 100  # of a socket's path; the limit is 104 on macOS and 108 on Linux, with the final zero


@cache
def short_path(folder: Path, socket: str) -> Path:
    """Return a path of `folder` that is short enough for `socket`: itself, or a link in a private directory.

    The link is removed at the end of this process.
    """
    if len(str(folder / socket).encode()) <= MAX_BYTES:
        return folder
    private = Path(tempfile.mkdtemp(prefix=PREFIX, dir=_parent(socket)))
    atexit.register(shutil.rmtree, private, ignore_errors=True)
    link = private / "at"
    link.symlink_to(folder)
    return link


def _parent(socket: str) -> str:
    """Return a folder for the link: the temporary folder, or `/tmp` if TMPDIR is too long itself."""
    chosen = tempfile.gettempdir()
    longest = Path(chosen, f"{PREFIX}{'x' * 8}", "at", socket)  # mkdtemp appends eight characters
    return chosen if len(str(longest).encode()) <= MAX_BYTES else "/tmp"  # noqa: S108 - a private folder in it
