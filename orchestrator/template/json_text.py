"""JSON texts in parameters and templates: parsed into data that can be stored and shown."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any, Final

import orjson

from orchestrator.schema.constraints import whole
from orchestrator.schema.type_names import type_name

MAX_DIGITS: Final = 400  # characters; no number that fits is longer
MAX_DEPTH: Final = 100
# JSON's form of the NUL character, or an escaped backslash before the same digits
_WRITTEN: Final = rb"\u0000"
_NUL: Final = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")


def read_json(text: str) -> Any:
    """Return the parsed JSON text.

    Raises:
        ValueError: not JSON, nested too deep, or with a number or a text that cannot be stored.
    """
    try:
        read = json.loads(text, parse_int=number, parse_float=number, parse_constant=number)
    except RecursionError:
        raise ValueError(f"nested deeper than {MAX_DEPTH}") from None
    if too_deep(read, MAX_DEPTH):
        raise ValueError(f"nested deeper than {MAX_DEPTH}")
    if "\\u" in text:
        try:
            encoded = json.dumps(read, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError("half of a character") from None
        if holds_nul(encoded):
            raise ValueError("the character NUL")
    return read


def holds_nul(text: bytes) -> bool:
    """Whether a JSON text has the character NUL in it, which PostgreSQL's texts cannot hold."""
    # the pattern without the pre-check takes 30 ns per byte
    return _WRITTEN in text and _NUL.search(text) is not None


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"Value '{text}' is not a number") from None


def number(value: Any) -> int | float:
    """Return a number, or the number that a text represents, if it fits into 64 bits.

    Raises:
        ValueError: not a number, or it does not fit.
    """
    if isinstance(value, str):
        if len(value) > MAX_DIGITS:
            raise ValueError("the number is too long")
        try:
            value = int(value)
        except ValueError:
            value = _float(value)
    if not isinstance(value, (int, float)):
        raise ValueError(f"expected a number, got {type_name(value)}")
    if isinstance(value, int):
        return whole(value)
    if not math.isfinite(value):
        raise ValueError(f"{value} is not a finite number")
    return value


def too_deep(value: Any, limit: int) -> bool:
    """Return whether lists and maps are nested more than `limit` levels."""
    level: Sequence[Any] = [value] if isinstance(value, (dict, list)) else []
    depth = 0
    while level:
        depth += 1
        if depth > limit:
            return True
        level = [
            item
            for parent in level
            for item in (parent.values() if isinstance(parent, dict) else parent)
            if item.__class__ is dict or item.__class__ is list
        ]
    return False


def load_json(data: bytes) -> Any:
    """Return a JSON document.

    Raises:
        orjson.JSONDecodeError: the text is not JSON.
        MemoryError: orjson ran out of memory, which it reports as invalid JSON.
    """
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        if "Not enough memory" in error.msg:
            raise MemoryError(error.msg) from None
        raise
