"""The shelf: a folder with a file for each box. It stands for the service behind a plugin."""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path
from typing import Any


class NoShelf(Exception):
    """There is no shelf at the moment."""


def make(token: str, **box: Any) -> str:
    """Put a box there and return its id; a token that was used before gives the box made then."""
    path = _folder() / f"box-{token}.json"
    if not path.exists():
        _write(path, {**box, "key": secrets.token_hex(8), "closed": False})
    return path.stem


def look(id: str) -> dict[str, Any] | None:
    """Return a box, None when there is none of that id."""
    try:
        found: dict[str, Any] = json.loads((_folder() / f"{id}.json").read_text())
    except FileNotFoundError:
        return None
    return found


def change(id: str, **what: Any) -> None:
    """Change a box that is there."""
    box = look(id)
    if box is not None:
        _write(_folder() / f"{id}.json", {**box, **what})


def remove(id: str) -> None:
    """Take a box away, if it is there."""
    (_folder() / f"{id}.json").unlink(missing_ok=True)


def _folder() -> Path:
    folder = Path(os.environ["ACME_SHELF"])
    if not folder.is_dir():
        raise NoShelf(f"there is no shelf at {folder}")
    return folder


def _write(path: Path, box: dict[str, Any]) -> None:
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(box))
    fresh.replace(path)
