"""Secret values, recognised by their text: the mask hides a value, not the map or list around it.

A secret value is a text, number or boolean that was computed from a hidden parameter or from a secret output.
Values of our own evaluation equal it; a value of a provider may contain it, also encoded.
"""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Self
from urllib.parse import quote, quote_plus

MASK: Final = "******"
MIN_FOUND_CHARACTERS: Final = 4  # a shorter text is recognised only where it is the whole value
MAX_KNOWN: Final = 100  # number of texts to search for; with more, any value counts as secret
MAX_SEARCHED_CHARACTERS: Final = 1_024  # of a long text only the beginning is searched in other values

Place = tuple[str | int, ...]  # keys of maps and indices of lists

_ABSENT: Final = object()


class SecretValues:
    """The texts of secret values; immutable."""

    __slots__ = ("_has_maps", "_needles", "texts")

    def __init__(self, texts: Iterable[str] = ()) -> None:
        """Take the texts; an empty text is no secret."""
        self.texts = frozenset(text for text in texts if text)
        self._has_maps = any(text[0] == "{" for text in self.texts)
        self._needles: tuple[str, ...] | None = None

    @classmethod
    def within(cls, *values: object) -> Self:
        """Return all texts, numbers and booleans within some values, and maps as a whole: their keys may be
        secret as well.
        """
        texts = [text for value in values for text in _texts(value)]
        return cls([*texts, *(_whole(value) for value in values if isinstance(value, Mapping))])

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self.texts)

    def __or__(self, other: SecretValues) -> SecretValues:
        """Return the secrets of both."""
        return SecretValues(self.texts | other.texts) if other.texts - self.texts else self

    def masked(self, value: object, like: object = None) -> Any:
        """Return a value with its secrets masked.

        A part is also masked whose counterpart in `like`, another value of the same kind, is secret; all
        of it if the shapes differ and `like` contains a secret.
        """
        if not self.texts or value is None:
            return value
        if isinstance(value, Mapping):
            if self._has_maps and _whole(value) in self.texts:
                return MASK
            if not (like is None or isinstance(like, Mapping)) and self.found_in(like):
                return MASK
            members = like if isinstance(like, Mapping) else {}
            return {
                (MASK if self._is_secret(key) else key): self.masked(item, members.get(key))
                for key, item in value.items()
            }
        if isinstance(value, list | tuple):
            items = like if isinstance(like, list | tuple) and len(like) == len(value) else None
            if items is None and self.found_in(like):
                return MASK
            return [self.masked(item, items[at] if items else None) for at, item in enumerate(value)]
        return MASK if self.found_in(like) or self._is_secret(value) else value

    def masked_output(self, value: object) -> Any:
        """Return a value of a provider with its secrets masked; it is masked as a whole if a secret is too
        short to be found in it.
        """
        return MASK if value is not None and self._has_short else self.masked(value)

    def found_in(self, value: object) -> bool:
        """Whether a value contains a secret."""
        return any(self._is_secret(text) for text in _texts(value, keys=True))

    def may_be_in(self, value: object) -> bool:
        """Whether a value of a provider may contain a secret."""
        return bool(self.texts) and (self._has_short or self.found_in(value))

    def within_values(self, value: object) -> SecretValues:
        """Return the secrets that a value contains."""
        return SecretValues(text for text in self.texts if SecretValues({text}).found_in(value))

    @property
    def _has_short(self) -> bool:
        return any(len(text) < MIN_FOUND_CHARACTERS for text in self.texts)

    def _is_secret(self, value: object) -> bool:
        if value is None or value == "" or not isinstance(value, str | int | float):
            return False
        text = str(value)
        if text in self.texts:
            return True
        if self._needles is None:
            self._needles = tuple(needle for secret in self.texts for needle in _needles(secret))
        if any(needle in text for needle in self._needles):
            return True
        unfolded = "".join(text.split())  # base64 has line breaks
        return unfolded != text and any(needle in unfolded for needle in self._needles)


NO_SECRETS: Final = SecretValues()


def both(one: SecretValues | None, other: SecretValues | None) -> SecretValues | None:
    """Return the secrets of both; None, if any value may be secret, prevails."""
    return None if one is None or other is None else bounded(one | other)


def bounded(secrets: SecretValues) -> SecretValues | None:
    """Return the secrets; None if they are too many."""
    return secrets if len(secrets.texts) <= MAX_KNOWN else None


def values_at(value: object, places: Iterable[Place]) -> Iterator[object]:
    """Yield the values at places. Where a part of a property does not exist, yield the nearest value
    around it; nothing where the property does not exist.
    """
    for place in places:
        found: Any = value
        for key in place:
            inner = _member(found, key)
            if inner is _ABSENT:
                break
            found = inner
        if found is not value:
            yield found


def _member(value: object, key: str | int) -> Any:
    if isinstance(value, Mapping):
        return value.get(key, _ABSENT)
    is_index = isinstance(value, list | tuple) and isinstance(key, int) and key < len(value)
    return value[key] if is_index else _ABSENT  # type: ignore[index]


def _texts(value: object, *, keys: bool = False) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            if keys and isinstance(key, str):
                yield key
            yield from _texts(item, keys=keys)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item, keys=keys)
    elif isinstance(value, str | int | float):  # a boolean is an int
        yield str(value)


def _whole(value: Mapping[str, Any]) -> str:
    """Return a map as a text, "" if it is empty or not known completely."""
    try:
        return json.dumps(value, sort_keys=True) if value else ""
    except TypeError:
        return ""


def _needles(secret: str) -> set[str]:
    """Return the forms in which a longer text may contain a secret."""
    if len(secret) < MIN_FOUND_CHARACTERS:
        return set()
    text = secret[:MAX_SEARCHED_CHARACTERS]
    forms = {text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]}
    forms |= {quote(text, safe=""), quote(text), quote_plus(text), html.escape(text)}
    content = text.encode(errors="surrogatepass")
    for offset in range(3):  # the alignment of the secret in the encoded text
        encoded = base64.b64encode(b"\0" * offset + content).decode()
        first = -(-offset * 8 // 6)  # the first character that depends on the secret alone
        stable = encoded[first : (offset + len(content)) * 8 // 6]
        forms |= {stable, stable.replace("+", "-").replace("/", "_")}
    return forms
