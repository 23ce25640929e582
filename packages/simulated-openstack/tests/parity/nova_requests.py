"""Requests to Nova."""

from __future__ import annotations

from typing import Any, Final

from parity.calls import Call

NEW: Final = {"OpenStack-API-Version": "compute 2.96"}
KEY: Final = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGYlfJ7SZ1V3XbbCsV0pYGt1wHd0bgmSGkYwN8BvPYVT t"


def old(method: str, path: str, body: Any = None, **options: Any) -> Call:
    return Call("nova", method, path, body, **options)


def new(method: str, path: str, body: Any = None, **options: Any) -> Call:
    """Return a call with a recent microversion."""
    return old(method, path, body, headers=NEW, **options)


def server(**values: Any) -> dict[str, Any]:
    """Return the body of a server."""
    return {"server": {"name": "h5-s", "flavorRef": "{flavor}", "imageRef": "{image}", **values}}


def act(name: str, body: Any = None, **options: Any) -> Call:
    """Return an action on the server."""
    return new("POST", "/servers/{s}/action", {name: body}, **options)


def until(*statuses: str, compare: bool = False) -> Call:
    """Return a call that waits for a status without a task."""
    return new("GET", "/servers/{s}", until=("server.status", statuses), compare=compare)


SETTLED: Final = new("GET", "/servers/{s}", until=("server.OS-EXT-STS:task_state", (None,)), compare=False)
