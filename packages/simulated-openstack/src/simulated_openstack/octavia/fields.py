"""The fields of objects: their defaults, their types and their bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from simulated_openstack.http import ApiError

REQUIRED: Final = object()
ROOT: Final = "/v2/lbaas"
FORBIDDEN: Final = "Policy does not allow this request to be performed."


@dataclass(frozen=True)
class Field:
    """A field of a request. `kind`: text, boolean, integer, list, map or any."""

    default: Any = None
    kind: str = "text"
    put: bool = True  # a PUT may change it
    values: tuple[Any, ...] = ()
    low: int | None = None
    high: int | None = None


NAME: Final = Field("")
DESCRIPTION: Final = Field("")
ADMIN_STATE_UP: Final = Field(True, "boolean")
TAGS: Final = Field(list, "list")
PORT: Final = Field(REQUIRED, "integer", put=False, low=1, high=65_535)

_KINDS: Final = {"text": "string", "boolean": "boolean", "integer": "integer", "list": "list", "map": "dict"}
_CLASSES: Final[dict[str, Any]] = {
    "text": str,
    "boolean": bool,
    "integer": int,
    "list": list,
    "map": dict,
    "any": object,
}


def invalid(name: str, value: Any, reason: str) -> ApiError:
    """Return the refusal of a malformed value."""
    return ApiError(400, f"Invalid input for field/attribute {name}. Value: '{value}'. {reason}")


def validation_failure(detail: str) -> ApiError:
    """Return the refusal of a request that contradicts itself or other objects."""
    return ApiError(400, f"Validation failure: {detail}")


def checked_value(name: str, field: Field, value: Any) -> Any:
    kind = _CLASSES[field.kind]
    if value is None:
        return None
    if not isinstance(value, kind) or (field.kind == "integer" and isinstance(value, bool)):
        raise invalid(name, value, f"Value should be {_KINDS[field.kind]}")
    if field.values and value not in field.values:
        raise invalid(name, value, f"Value should be one of: {', '.join(map(str, field.values))}")
    if field.low is not None and value < field.low:
        raise invalid(name, value, f"Value should be greater or equal to {field.low}")
    if field.high is not None and value > field.high:
        raise invalid(name, value, f"Value should be lower or equal to {field.high}")
    if field.kind == "text" and len(value) > 4_096:
        raise invalid(name, value, "Value should have a maximum character requirement of 255")
    return value
