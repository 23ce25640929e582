"""Short paths for unix sockets: the kernel allows some hundred characters, and directories can be longer."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

MAX_BYTES = 100  # of a socket's path; the limit is 104 on macOS and 108 on Linux, with the final zero


@cache
def short_path(folder: Path, socket: str) -> Path:
    """Return a path of `folder` that is short enough for `socket`: itself, or a link in a private directory.

    The link is removed at the end of this process.
    """
    if len(str(folder / socket).encode()) <= MAX_BYTES:
        return folder
    private = Path(tempfile.mkdtemp(prefix="orchestrator-"))
    atexit.register(shutil.rmtree, private, ignore_errors=True)
    link = private / "at"
    link.symlink_to(folder)
    return link
