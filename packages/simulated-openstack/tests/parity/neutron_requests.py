"""Requests to Neutron, and an id of no object."""

from __future__ import annotations

from typing import Any, Final

from parity.calls import Call


def _call(method: str, path: str, body: Any = None, **options: Any) -> Call:
    return Call("neutron", method, f"/v2.0{path}", body, **options)


def post(path: str, body: Any, **options: Any) -> Call:
    return _call("POST", path, body, **options)


def put(path: str, body: Any = None, **options: Any) -> Call:
    return _call("PUT", path, body, **options)


def get(path: str, **options: Any) -> Call:
    return _call("GET", path, **options)


def delete(path: str, **options: Any) -> Call:
    return _call("DELETE", path, **options)


NO_ID: Final = "11111111-2222-3333-4444-555555555555"
