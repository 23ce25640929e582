"""The client of a shelf service: a directory with a file per box. It stands for the SDK of a real service."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class ShelfUnavailable(Exception):
    """The shelf cannot be reached."""


def create(token: str, **box: Any) -> str:
    """Create a box and return its id; a repeated token returns the existing box."""
    path = _folder() / f"box-{token}.json"
    if not path.exists():
        _write(path, {**box, "key": secrets.token_hex(8), "closed": False, "checks": 0, "broken": False})
    return path.stem


def get(id: str) -> dict[str, Any] | None:
    """Return a box, or None if it does not exist."""
    try:
        result: dict[str, Any] = json.loads((_folder() / f"{id}.json").read_text())
    except FileNotFoundError:
        return None
    return result


def all_boxes() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield all boxes by id."""
    for path in sorted(_folder().glob("box-*.json")):
        box = get(path.stem)
        if box is not None:
            yield path.stem, box


def update(id: str, **values: Any) -> None:
    """Update a box if it exists."""
    box = get(id)
    if box is not None:
        _write(_folder() / f"{id}.json", {**box, **values})


def delete(id: str) -> None:
    """Delete a box if it exists."""
    (_folder() / f"{id}.json").unlink(missing_ok=True)


def copy(id: str, token: str) -> str:
    """Copy a box and return the id of the copy; a repeated token returns the existing copy."""
    path = _folder() / f"copy-{token}.json"
    if not path.exists():
        _write(path, get(id) or {})
    return path.stem


def _folder() -> Path:
    folder = Path(os.environ["ACME_SHELF"])
    if not folder.is_dir():
        raise ShelfUnavailable(f"no shelf at {folder}")
    return folder


def _write(path: Path, box: dict[str, Any]) -> None:
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(box))
    fresh.replace(path)
