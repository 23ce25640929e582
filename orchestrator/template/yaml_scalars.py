"""The values of plain YAML scalars: as in PyYAML's SafeLoader, except that dates stay texts.

Values are those that JSON can represent everywhere: integers of 64 bits, finite floats.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

import yaml

from orchestrator.schema.constraints import JSON_INTEGERS

_PREFIX: Final = "tag:yaml.org,2002:"
_RESOLVERS: Final = yaml.SafeLoader.yaml_implicit_resolvers
_CONSTRUCTOR: Final = yaml.constructor.SafeConstructor()
_MAKERS: Final[Mapping[str, Callable[[yaml.ScalarNode], Any]]] = {
    f"{_PREFIX}int": _CONSTRUCTOR.construct_yaml_int,
    f"{_PREFIX}float": _CONSTRUCTOR.construct_yaml_float,
    f"{_PREFIX}bool": _CONSTRUCTOR.construct_yaml_bool,
    f"{_PREFIX}null": _CONSTRUCTOR.construct_yaml_null,
}
_TEXTS: Final = frozenset(f"{_PREFIX}{name}" for name in ("str", "timestamp", "merge", "value"))
_MAX_LENGTH: Final = 400  # characters; valid numbers are shorter, and converting a long one is quadratic
_NONZERO: Final = frozenset("123456789")  # a leading zero may mean octal
_SURELY_FITS: Final = 18  # digits that 64 bits have room for


@lru_cache(maxsize=8192)
def plain_scalar(text: str) -> Any:
    """Return the value of a plain scalar without a tag.

    Raises:
        ValueError: a number that JSON cannot represent.
    """
    if text[:1] in _NONZERO and len(text) <= _SURELY_FITS and text.isascii() and text.isdigit():
        return int(text)  # much the commonest number
    for tag, pattern in _RESOLVERS.get(text[:1], ()):
        if pattern.match(text):
            return text if tag in _TEXTS else _made(tag, text)
    return text


def scalar(tag: str | None, implicit: bool, text: str) -> Any:
    """Return the value of a scalar with an optional tag; `implicit` is the flag of the parser's event.

    Raises:
        ValueError: a tag that templates do not support, or a text that does not match it.
    """
    if tag is None or tag == "!":
        return plain_scalar(text) if implicit else text
    if tag in _TEXTS:
        return text
    if tag not in _MAKERS:
        raise ValueError(f"could not determine a constructor for the tag '{shown(tag)}'")
    return _made(tag, text)


def key_text(value: object) -> str:
    """Return a scalar as the text that JSON writes when it is a key: ``yes`` is ``true``."""
    return value if isinstance(value, str) else json.dumps(value)


def shown(tag: str) -> str:
    """Return a tag the way an author writes it."""
    return f"!!{tag.removeprefix(_PREFIX)}" if tag.startswith(_PREFIX) else tag


def _made(tag: str, text: str) -> Any:
    tag_name = tag.removeprefix(_PREFIX)
    if len(text) > _MAX_LENGTH:
        raise ValueError(f"the {tag_name} is too long; put it in quotes to make it a string")
    try:
        value = _MAKERS[tag](yaml.ScalarNode(tag, text))
    except (ValueError, OverflowError, LookupError):
        raise ValueError(
            f"{text!r} is not a valid {tag_name}; put it in quotes to make it a string"
        ) from None
    if isinstance(value, int) and value not in JSON_INTEGERS:
        raise ValueError(f"the number {text} does not fit in 64 bits; put it in quotes to make it a string")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"the number {text} is not finite; put it in quotes to make it a string")
    return value
