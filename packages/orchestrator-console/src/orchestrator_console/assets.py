"""Styles and scripts of the console. Their addresses contain a hash, so browsers keep them for good.

`vendor/` holds files of other projects as built and published, with their licences. `PINS` has their hashes;
a test compares them.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Final

from flask import Blueprint, Response, url_for
from werkzeug.exceptions import NotFound

files = Blueprint("assets", __name__)

FOLDER: Final = Path(__file__).parent / "assets"
TYPES: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
PINS: Final = {
    # htmx.org 4.0.1, dist/htmx.min.js
    "vendor/htmx.min.js": "a0abb04f2f45a1f89d1d4844023245537e5e6014c87b144553e0607b4cc32130",
    # uplot 1.6.32, dist/uPlot.iife.min.js and dist/uPlot.min.css
    "vendor/uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
    "vendor/uPlot.min.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
}


@files.get("/assets/<digest>/<path:name>")
def file(digest: str, name: str) -> Response:
    """Return a style or a script of this version."""
    known = _digests()
    if name not in known or digest != _release():
        raise NotFound
    response = Response(_content(name), mimetype=TYPES[Path(name).suffix])
    response.headers["Cache-Control"] = "public, max-age=31536000, immutable"
    return response


def asset(name: str) -> str:
    """Return the address of a style or a script."""
    return url_for("assets.file", digest=_release(), name=name)


@cache
def _content(name: str) -> bytes:
    return (FOLDER / name).read_bytes()


@cache
def _digests() -> dict[str, str]:
    """Return the hashes of all files that are served."""
    return {
        str(path.relative_to(FOLDER)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(FOLDER.rglob("*"))
        if path.suffix in TYPES
    }


@cache
def _release() -> str:
    """Return a hash of all files: modules import each other by relative addresses."""
    text = "".join(f"{name}{digest}" for name, digest in _digests().items())
    return hashlib.sha256(text.encode()).hexdigest()[:16]
