"""Keep modules of the current directory from replacing those of the server (`api`, `tasks`)."""

from __future__ import annotations

import sys
from pathlib import Path

import orchestrator


def remove_current_directory() -> None:
    """Remove the current directory from the import path, unless the server itself is installed from there.

    `python -m` puts it there, and so do the command lines of gunicorn and Celery.
    """
    installed = Path(orchestrator.__file__).resolve().parents[1]
    here = Path.cwd().resolve()
    if here != installed:
        sys.path[:] = [entry for entry in sys.path if entry and Path(entry).resolve() != here]
