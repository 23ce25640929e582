"""The user data of a server (docs/internals/resource-types.md §C 1, `user_data_format`).

RAW is passed on unchanged. The other formats are a MIME message of parts: the files of `guest_files.py`, the
user's own data, and data that the tools on the guest read: metadata, addresses of this API.
"""

from __future__ import annotations

import base64
import email
import json
import uuid
from collections.abc import Iterable, Mapping
from email.message import Message
from email.mime.text import MIMEText
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from orchestrator.json_types import JsonMapping
from orchestrator.resources.base import Context, Value
from orchestrator.resources.openstack.nova.server.declarations import CFN_TOOLS, RAW
from orchestrator.resources.openstack.nova.server.guest_files import (
    BOOT_HOOK,
    CLOUD_CONFIG,
    PART_HANDLER,
    USER_DATA_RUNNER,
)

CFN_DATA: Final = "x-cfninitdata"
SCRIPT: Final = "x-shellscript"
SUFFIX: Final = ".py"
MAX_FIXED_PARTS: Final = 64
MAX_ENDPOINTS: Final = 8  # an installation has a single endpoint
PART_HANDLER_FILE: Final = f"part-handler{SUFFIX}"  # the names that the agents of the images expect
USER_DATA_RUNNER_FILE: Final = f"loguserdata{SUFFIX}"


def user_data(ctx: Context, props: Mapping[str, Value], metadata: JsonMapping) -> str:
    """Return the user data in base64, "" without any; `metadata` are for the tools on the guest."""
    data_format = props.get("user_data_format") or CFN_TOOLS
    content = _content(ctx, props.get("user_data") or "", data_format)
    text = content if data_format == RAW else _message(ctx, content, metadata, data_format)
    return base64.b64encode(text.encode()).decode("ascii")


def _content(ctx: Context, given: str, data_format: str) -> str:
    """Return the given data, or the text of the config with this id."""
    if data_format == CFN_TOOLS or not _is_id(given):
        return given
    config = ctx.software.config(given)
    if config is None:
        return given
    text = config.draft.config
    return text if isinstance(text, str) else "" if text is None else json.dumps(text)


def _is_id(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text.lower()
    except ValueError:
        return False


def _message(ctx: Context, content: str, metadata: JsonMapping, data_format: str) -> str:
    parts = [
        _fixed_part(CLOUD_CONFIG, "cloud-config"),
        _fixed_part(BOOT_HOOK, "cloud-boothook", "boothook.sh"),
        _fixed_part(PART_HANDLER, "part-handler", PART_HANDLER_FILE),
    ]
    if data_format == CFN_TOOLS:
        parts.append(_part(content, CFN_DATA, "cfn-userdata"))
        parts.append(_fixed_part(USER_DATA_RUNNER, SCRIPT, USER_DATA_RUNNER_FILE))
        parts += _addresses(ctx.location.endpoint)
    else:
        parts += _user_parts(content)
    if metadata:
        parts.append(_part(json.dumps(metadata), CFN_DATA, "cfn-init-data"))
    return _multipart(parts, boundary=f"==={ctx.token}===")


def _multipart(parts: Iterable[str], boundary: str) -> str:
    """Return the message as the library email writes it, which takes milliseconds for it."""
    head = f'Content-Type: multipart/mixed; boundary="{boundary}"\nMIME-Version: 1.0\n\n'
    return f"{head}--{boundary}\n" + f"\n--{boundary}\n".join(parts) + f"\n--{boundary}--\n"


def _user_parts(content: str) -> list[str]:
    """Return the parts of the user's data: of a MIME message, or a script."""
    if not content:
        return []
    parsed = email.message_from_string(content)
    if parsed.is_multipart():
        return [part.as_string() for part in parsed.get_payload() if isinstance(part, Message)]
    return [_part(content, SCRIPT, "userdata")]


@lru_cache(maxsize=MAX_ENDPOINTS)
def _addresses(endpoint: str) -> tuple[str, ...]:
    """Return the address of this API, as the cfn tools read it."""
    if not endpoint:
        return ()
    url = urlsplit(endpoint)
    settings = (
        "[Boto]\ndebug = 0\n"
        f"is_secure = {int(url.scheme == 'https')}\nhttps_validate_certificates = 1\n"
        f"cfn_region_name = heat\ncfn_region_endpoint = {url.hostname}\n"
    )
    return (
        _fixed_part(f"{endpoint}/v1/", CFN_DATA, "cfn-metadata-server"),
        _fixed_part(settings, CFN_DATA, "cfn-boto-cfg"),
    )


def _part(content: str, subtype: str, filename: str = "") -> str:
    if not content:
        return _fixed_part(content, subtype, filename)
    return _rendered(content, subtype, filename)


@lru_cache(maxsize=MAX_FIXED_PARTS)
def _fixed_part(content: str, subtype: str, filename: str = "") -> str:
    """Return a part that is equal for many servers. Parts with values of users are not kept."""
    return _rendered(content, subtype, filename)


def _rendered(content: str, subtype: str, filename: str) -> str:
    part = MIMEText(content, _subtype=subtype, _charset="us-ascii" if content.isascii() else "utf-8")
    if filename:
        part.add_header("Content-Disposition", "attachment", filename=filename)
    return part.as_string()
