"""Temporary URLs: access to an object without a token, by a signature with a key of its account."""

from __future__ import annotations

import hashlib
import hmac
import time
from typing import Final

from simulated_openstack.http import ApiError, Request
from simulated_openstack.json_types import JsonObject

KEYS: Final = ("x-account-meta-temp-url-key", "x-account-meta-temp-url-key-2")
DIGESTS: Final = {64: hashlib.sha256, 128: hashlib.sha512}  # by the length of a signature
ALLOWED: Final = {"GET": ("GET",), "HEAD": ("GET", "PUT", "HEAD"), "PUT": ("PUT",), "DELETE": ("DELETE",)}


def is_temporary(request: Request) -> bool:
    """Return whether a request is signed."""
    return request.value("temp_url_sig") is not None


def check_signature(request: Request, account: JsonObject | None) -> None:
    """Refuse a request whose signature is wrong or no longer valid."""
    signature, expires = request.value("temp_url_sig") or "", request.value("temp_url_expires") or ""
    digest = DIGESTS.get(len(signature))
    keys = [str((account or {}).get("headers", {}).get(name) or "") for name in KEYS]
    if digest is None or not expires.isdecimal() or int(expires) < time.time():
        raise ApiError(401, "Temp URL invalid")
    for method in ALLOWED.get(request.method, ()):
        text = f"{method}\n{expires}\n{request.path}".encode()
        for key in filter(None, keys):
            if hmac.compare_digest(hmac.new(key.encode(), text, digest).hexdigest(), signature):
                return
    raise ApiError(401, "Temp URL invalid")
