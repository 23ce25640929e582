"""Secrets."""

from __future__ import annotations

import base64
from typing import ClassVar, Final

from simulated_openstack.barbican.collection import Collection
from simulated_openstack.http import ApiError, Response
from simulated_openstack.json_types import JsonObject
from simulated_openstack.service import Call, Service

TYPES: Final = ("symmetric", "public", "private", "certificate", "passphrase", "opaque")
INVALID: Final = "Provided object does not match schema 'Secret'"


class Secrets(Collection):
    """Secrets with their contents, in base64."""

    path: ClassVar[str] = "secrets"
    singular: ClassVar[str] = "secret"

    def __init__(self, barbican: Service) -> None:
        """Add the routes."""
        super().__init__(barbican)
        barbican.router.add("GET", "/v1/secrets/{id_}/payload", self.payload)

    def checked(self, call: Call, body: JsonObject) -> JsonObject:
        """Return the values of a new secret."""
        del call
        kind = body.get("secret_type") or "opaque"
        if kind not in TYPES:
            raise ApiError(400, f"{INVALID}: '{kind}' is not one of {list(TYPES)}.")
        payload, content_type = body.get("payload"), body.get("payload_content_type")
        if payload is None and content_type:
            raise ApiError(400, f"{INVALID}: payload must be provided when payload_content_type is supplied.")
        if payload is not None and not content_type:
            raise ApiError(400, f"{INVALID}: payload_content_type must be provided when payload is supplied.")
        if payload is not None and not payload.strip():
            raise ApiError(400, f"{INVALID}: If 'payload' specified, must be non empty.")
        binary = content_type == "application/octet-stream"
        if binary and body.get("payload_content_encoding") != "base64":
            raise ApiError(400, f"{INVALID}: payload_content_encoding must be specified for binary payloads.")
        return secret(body, payload if binary else payload and payload.encode(), binary=binary)

    def payload(self, call: Call, id_: str) -> Response:
        """Return the content of a secret."""
        row = self.found(call, id_)
        if row["_payload"] is None:
            raise ApiError(404, "Not Found. Sorry but your secret has no payload.")
        wanted = call.request.headers.get("accept", "*/*")
        actual = row["content_types"]["default"]
        if wanted not in (actual, "*/*"):
            raise ApiError(406, "Not Acceptable")
        return Response(200, base64.b64decode(row["_payload"]), {"Content-Type": actual})


def secret(body: JsonObject, payload: str | bytes | None, *, binary: bool) -> JsonObject:
    """Return the values of a secret; a content is given as bytes, or as text in base64."""
    fields = ("name", "algorithm", "bit_length", "mode", "expiration")
    values: JsonObject = {name: body.get(name) for name in fields}
    content = base64.b64encode(payload).decode() if isinstance(payload, bytes) else payload
    kind = "application/octet-stream" if binary else "text/plain"
    types = {} if payload is None else {"content_types": {"default": kind}}
    return {**values, **types, "secret_type": body.get("secret_type") or "opaque", "_payload": content}
