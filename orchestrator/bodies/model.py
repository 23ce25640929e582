"""Base classes of bodies: descriptions, requests that are checked, answers that are rendered."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from orchestrator.errors import Diagnostic, InvalidTemplate
from orchestrator.json_types import JsonMapping, JsonObject

UUID = "7c6c8f58-4b32-4d6b-9a8e-6a5f3f1f9a01"


class Shape(BaseModel):
    """A JSON object; further keys are possible."""

    model_config = ConfigDict(extra="allow")


class Answer(Shape):
    """A JSON object of an answer, with the attributes of a row."""

    model_config = ConfigDict(from_attributes=True)

    @classmethod
    def shown(cls, row: object) -> JsonObject:
        """Return the answer for a row."""
        return cls.model_validate(row).model_dump()


class Request(BaseModel):
    """A JSON object of a request: other keys and other types are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @classmethod
    def read(cls, document: JsonMapping, context: object = None) -> Self:
        """Return the request; validators receive `context`.

        Raises:
            InvalidTemplate: the request is not valid; every fault is listed.
        """
        try:
            request = cls.model_validate(document, context=context)
        except ValidationError as error:
            raise InvalidTemplate([cls._diagnostic(each) for each in error.errors()]) from None
        if faults := list(request.contradictions(context)):
            raise InvalidTemplate(faults)
        return request

    def contradictions(self, context: Any) -> Iterable[Diagnostic]:  # noqa: ARG002 - for subclasses
        """Return the faults of fields that do not fit each other."""
        return ()

    @classmethod
    def _diagnostic(cls, error: ErrorDetails) -> Diagnostic:
        path, values = ".".join(map(str, error["loc"])), error.get("ctx", {})
        refusal, hint = cls._refusal(error["loc"]) if len(error["loc"]) == 1 else None, ""
        if error["type"] == "extra_forbidden":
            known = ", ".join(cls.model_fields)
            code, text = "unknown-key", f"Unknown key {path!r}, must be one of: {known}"
        elif "text" in values:  # of `refused`
            code, text, hint = error["type"], values["text"], values["hint"]
        elif refusal is not None:
            code, text = refusal.code, refusal.text
        else:
            code, text = f"invalid-{error['loc'][0]}", f"{path}: {error['msg']}"
        return fault(code, text, path, hint)

    @classmethod
    def _refusal(cls, location: tuple[int | str, ...]) -> Refusal | None:
        found = cls.model_fields.get(str(location[0])) if location else None
        metadata = found.metadata if found is not None else ()
        return next((item for item in metadata if isinstance(item, Refusal)), None)


@dataclass(frozen=True, slots=True)
class Refusal:
    """The error of a field whose value is missing or has the wrong type or size."""

    code: str
    text: str


def refused(code: str, text: str, hint: str = "") -> PydanticCustomError:
    """Return the error of a validator."""
    return PydanticCustomError(code, "{text}", {"text": text, "hint": hint})


def fault(code: str, text: str, path: str, hint: str = "") -> Diagnostic:
    """Return a fault of a request."""
    return Diagnostic(code, text, path, hint=hint, heat_type="HTTPBadRequest")


def described(text: str, *example: Any, **options: Any) -> Any:
    """Return a field with a description; required unless a `default` is given."""
    if example:
        options["examples"] = list(example)
    return Field(description=text, **options)


def optional(text: str, *example: object, **options: object) -> Any:
    """Return an optional field."""
    return described(text, *example, default=None, **options)


def shown_time(value: object) -> object:
    """Return a time in UTC, in seconds; other values as they are."""
    return value.astimezone(dt.UTC).isoformat()[:19] + "Z" if isinstance(value, dt.datetime) else value


def none_if_empty(value: object) -> object:
    """Return None for an empty text."""
    return None if value == "" else value


Time = Annotated[
    str,
    BeforeValidator(shown_time),
    Field(
        pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$",
        description="Time in UTC, in seconds.",
        examples=["2026-01-01T12:00:00Z"],
    ),
]
Id = Annotated[str, BeforeValidator(str), Field(description="A UUID.", examples=[UUID])]
Text = Annotated[str | None, BeforeValidator(none_if_empty)]  # of a row: an empty text is none
