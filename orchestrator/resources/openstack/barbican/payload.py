"""Contents of secrets as attributes."""

from __future__ import annotations

import base64

from orchestrator.clients.openstack.platform_services.key_manager import SECRETS, TEXT, KeyManager
from orchestrator.errors import ProviderNotFound
from orchestrator.json_types import JsonMapping


def payload_text(api: KeyManager, ref: str, secret: JsonMapping | None = None) -> str | None:
    """Return the content of a secret: bytes that are no text in base64; None without a content. `secret` is
    its description, if it is known.
    """
    found = secret or api.find(SECRETS, ref) or {}
    content_type = (found.get("content_types") or {}).get("default")
    if not content_type:
        return None
    try:
        content = api.payload(ref, content_type)
    except ProviderNotFound:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        if content_type.startswith(TEXT):
            return content.decode(errors="replace")
        return base64.b64encode(content).decode()
