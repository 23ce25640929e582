"""Answers without the values that differ between runs, and their comparison."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from parity.calls import Answer, Call

PATTERNS: Final = (
    (re.compile(r"Value should be one of: .*"), "Value should be one of: <values>"),
    (re.compile(r"^(noop_driver|amphora)$"), "<provider>"),
    (re.compile(r"already used [\d, ]+ of"), "already used <number> of"),
    (re.compile(r"exists for flavor \S+ and"), "exists for flavor <id> and"),
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "<uuid>"),
    (re.compile(r"\b[0-9a-f]{32}\b"), "<hex>"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)?"), "<time>"),
    (re.compile(r"\bfa:16:3e(:[0-9a-f]{2}){3}\b"), "<mac>"),
    (re.compile(r"http://127\.0\.0\.1:\d+"), "<url>"),
    (re.compile(r"\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b"), "<ip>"),
    (re.compile(r"host-\d+-\d+-\d+-\d+"), "<host>"),
    (re.compile(r"\breq-<uuid>"), "<request>"),
)
IGNORED_KEYS: Final = frozenset(
    {
        "description_of_cloud",
        "catalog",
        "fault",
        "adminPass",
        "OS-EXT-SRV-ATTR:instance_name",
        "OS-EXT-SRV-ATTR:reservation_id",
        "audit_ids",
        "revision_number",
        "standard_attr_id",
        "provider:segmentation_id",
        "segmentation_id",
        # Octavia's no-op provider
        "operating_status",
        "vip_network_id",
    }
)
ERROR_KEYS: Final = frozenset({"message", "type", "title", "faultstring"})
REQUEST_ID: Final = "x-openstack-request-id"


def recorded(call: Call, answer: Answer) -> dict[str, Any]:
    """Return the comparable form of an answer, as it is stored."""
    return {
        "call": f"{call.service} {call.method} {call.path} ({call.by})",
        "status": answer.status,
        "request_id": REQUEST_ID in answer.headers or answer.status in (300, 401),
        "body": normalized(answer.body),
    }


def normalized(value: Any) -> Any:
    """Return a value with placeholders for ids, times and addresses."""
    if isinstance(value, dict):
        kept = {key: item for key, item in value.items() if key not in IGNORED_KEYS}
        return {key: normalized(item) for key, item in kept.items() if not _is_number_of(key, item)}
    if isinstance(value, list):
        return [normalized(item) for item in value]
    if isinstance(value, str):
        value = re.sub(r"Callback \S+ failed with \"(.*)\"\.$", r"\1", value)
        value = value.split("\n\nFailed validating", 1)[0]
        for pattern, replacement in PATTERNS:
            value = pattern.sub(replacement, value)
    return value


def _is_number_of(key: str, value: Any) -> bool:
    """Whether a value counts objects of all tests, or numbers them."""
    return isinstance(value, int) and (key == "id" or re.fullmatch("total[A-Za-z]+Used", key) is not None)


def differences(real: Any, simulated: Any, path: str = "") -> list[str]:
    """Return the places where a simulated answer differs from the real answer."""
    if isinstance(real, dict) and isinstance(simulated, dict):
        found = [f"{path}.{key} is missing" for key in real.keys() - simulated.keys()]
        found += [
            f"{path}.{key} is unknown" for key in simulated.keys() - real.keys() if key != "description"
        ]
        for key in real.keys() & simulated.keys():
            found += differences(real[key], simulated[key], f"{path}.{key}")
        return found
    if isinstance(real, list) and isinstance(simulated, list):
        real, simulated = _sorted(real), _sorted(simulated)
        if len(real) != len(simulated):
            return [f"{path} has {len(simulated)} items instead of {len(real)}"]
        pairs = enumerate(zip(real, simulated, strict=True))
        return [
            text for number, (one, other) in pairs for text in differences(one, other, f"{path}[{number}]")
        ]
    return [] if real == simulated else [f"{path} is {simulated!r} instead of {real!r}"]


def _sorted(items: list[Any]) -> list[Any]:
    """Return the items in an order that depends on their contents only: services list in any order."""
    return sorted(items, key=lambda item: json.dumps(item, sort_keys=True))
