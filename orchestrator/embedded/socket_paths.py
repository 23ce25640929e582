"""Paths of unix sockets: the kernel takes about a hundred characters, people's folders may be longer."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

LONGEST = 100  # characters of a socket's path; 104 on macOS and 108 on Linux, with the final zero


@cache
def short_path(folder: Path, socket: str) -> Path:
    """Return a path of `folder` short enough to reach `socket` in it: itself, or a link in a private folder.

    The link lives as long as this process.
    """
    if len(str(folder / socket).encode()) <= LONGEST:
        return folder
    private = Path(tempfile.mkdtemp(prefix="orchestrator-"))
    atexit.register(shutil.rmtree, private, ignore_errors=True)
    link = private / "at"
    link.symlink_to(folder)
    return link
