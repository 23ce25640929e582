"""The fields of objects: their defaults, their types and the rights to set them; lists in pages."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from simulated_openstack.http import ApiError
from simulated_openstack.json_types import JsonObject
from simulated_openstack.service import Call

REQUIRED: Final = object()
TAG_FILTERS: Final = ("tags", "tags-any", "not-tags", "not-tags-any")
MAX_TEXT: Final = 255
TRUE: Final = (True, 1, "true", "True", "1", "on", "yes")
FALSE: Final = (False, 0, "false", "False", "0", "off", "no")
MAC: Final = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}", re.IGNORECASE)


@dataclass(frozen=True)
class Field:
    """A field of an object. `kind`: text, long, boolean, integer, uuid, mac, address or any."""

    default: Any = ""
    kind: str = "text"
    post: bool = True
    put: bool = True
    admin: bool = False  # only an admin may set it


def bad_request(message: str) -> ApiError:
    """Return the refusal of a malformed request."""
    return ApiError(400, message, "HTTPBadRequest")


def invalid_input(message: str) -> ApiError:
    """Return the refusal of a value."""
    return ApiError(400, f"Invalid input for operation: {message}", "InvalidInput")


def checked_value(name: str, field: Field, value: Any) -> Any:
    """Return a value of a field's type."""
    if value is None or field.kind == "any":
        return value
    if field.kind in {"text", "long"}:
        if not isinstance(value, str):
            raise bad_request(f"Invalid input for {name}. Reason: '{value}' is not a valid string.")
        if field.kind == "text" and len(value) > MAX_TEXT:
            raise bad_request(f"Invalid input for {name}. Reason: '{value}' exceeds maximum length of 255.")
    elif field.kind == "boolean":
        if value not in TRUE and value not in FALSE:
            raise invalid_input(f"'{value}' cannot be converted to boolean.")
        return value in TRUE
    elif field.kind == "integer":
        try:
            return int(value)
        except (TypeError, ValueError) as error:
            raise invalid_input(f"'{value}' is not an integer.") from error
    elif not _has_form(field.kind, str(value)):
        form = {"uuid": "UUID", "mac": "MAC address", "address": "IP address"}[field.kind]
        raise bad_request(f"Invalid input for {name}. Reason: '{value}' is not a valid {form}.")
    return value


def _has_form(kind: str, text: str) -> bool:
    try:
        if kind == "uuid":
            UUID(text)
        elif kind == "address":
            ipaddress.ip_address(text)
        else:
            return MAC.fullmatch(text) is not None
    except ValueError:
        return False
    return True


def page(call: Call, rows: list[JsonObject]) -> tuple[list[JsonObject], list[JsonObject]]:
    """Return a page of a list, and the links to the pages around it."""
    request = call.request
    keys = [*request.values("sort_key"), "id"]
    directions = [*request.values("sort_dir"), *["asc"] * len(keys)]
    for key, direction in reversed(list(zip(keys, directions, strict=False))):
        rows.sort(key=lambda row, key=key: str(row.get(key)), reverse=direction == "desc")  # type: ignore[misc]
    limit, marker = int(request.value("limit") or 0), request.value("marker")
    if marker:
        place = next((i for i, row in enumerate(rows) if row["id"] == marker), None)
        if place is None:
            raise invalid_input(f"Pagination marker {marker} not found.")
        rows = rows[place + 1 :]
    if not limit:
        return rows, []
    shown, links = rows[:limit], []
    if len(shown) == limit:
        links.append({"rel": "next", "href": request.following(shown[-1]["id"], call.base)})
    if shown:
        previous = request.following(shown[0]["id"], call.base)
        links.append({"rel": "previous", "href": f"{previous}&page_reverse=True"})
    return shown, links


def only_fields(call: Call, rows: list[JsonObject]) -> list[JsonObject]:
    """Return the fields that the query names, all without names."""
    names = set(call.request.values("fields"))
    return [{k: v for k, v in row.items() if k in names} for row in rows] if names else rows


def has_tags(row: JsonObject, name: str, tags: set[str]) -> bool:
    """Whether an object matches one of `TAG_FILTERS`."""
    own = set(row.get("tags") or ())
    found = bool(own & tags) if name.endswith("any") else tags <= own
    return found != name.startswith("not-")
