"""Match texts against patterns of callers in bounded time. Only this module compiles such patterns.

Heat uses Python's regular expressions, whose backtracking takes exponential time for a pattern such as
``(a+)+b``, and holds the interpreter meanwhile. Python matches patterns with a single open repetition; RE2
matches all others, in time linear in the text. Patterns that RE2 does not support (look-around,
back-references) are matched by Python while the text is short enough.
"""

from __future__ import annotations

import fnmatch
import math
import re
import warnings
from collections.abc import Iterable
from functools import lru_cache
from re import _constants as op  # type: ignore[attr-defined]  # the parse tree of a pattern is not public
from re import _parser  # type: ignore[attr-defined]
from typing import Any, Final

import re2

_MAX_TRIES: Final = 1e6  # about ten milliseconds, in which the interpreter runs nothing else
_MAX_FREEDOM: Final = 3.0  # three open repetitions in sequence: cubic in the length of the text
_MIN_LONG_REPEAT: Final = 16
_BITS_OF_A_LENGTH: Final = 10.0  # of a text of about a thousand characters
_REPEATS: Final = frozenset({op.MAX_REPEAT, op.MIN_REPEAT})

# Python's classes include all of Unicode, those of RE2 only ASCII.
_SPACES: Final = r"\s\x0b\x1c-\x1f\x{85}\p{Z}"
_CLASSES: Final = {
    r"\d": r"\p{Nd}",
    r"\D": r"\P{Nd}",
    r"\w": r"[\p{L}\p{N}_]",
    r"\W": r"[^\p{L}\p{N}_]",
    r"\s": f"[{_SPACES}]",
    r"\S": f"[^{_SPACES}]",
    r"\Z": r"\z",
}
_CLASSES_IN_SET: Final = {
    r"\d": r"\p{Nd}",
    r"\D": r"\P{Nd}",
    r"\w": r"\p{L}\p{N}_",
    r"\s": _SPACES,
    r"\W": r"\W",  # has no equivalent in a set: ASCII only
    r"\S": r"\S",
}
_ASSERTIONS: Final = (op.ASSERT, op.ASSERT_NOT)
_TOKEN: Final = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\.", re.DOTALL)


class Matcher:
    """A compiled pattern."""

    def __init__(self, pattern: str) -> None:
        """Compile the pattern.

        Raises:
            ValueError: not a regular expression, or a pattern that backtracks without bound and that RE2 does
                not support.
        """
        try:
            with warnings.catch_warnings():
                # A later Python may read "[[a]" differently.
                warnings.simplefilter("ignore", FutureWarning)
                self._compiled = re.compile(pattern)
                parsed = _parser.parse(pattern)
        except (re.error, OverflowError, RecursionError) as error:
            raise ValueError(f'"{pattern}" is not a regular expression: {error}') from None
        freedom = _freedom(parsed)
        self._linear = _linear_matcher(pattern) if freedom > 1.0 else None
        # The longest text for Python: the number of attempts grows with this power of the length.
        tries = _MAX_TRIES ** (1 / max(freedom, 1.0))
        self._max_length = 0 if freedom >= _MAX_FREEDOM or self._linear is not None else tries
        if freedom >= _MAX_FREEDOM and self._linear is None:
            raise ValueError(
                f'"{pattern}" could take for ever to match: it repeats repetitions in a form that RE2 does '
                "not support"
            )

    def matches(self, text: str) -> bool:
        """Return whether the pattern matches all of `text`; False for a text too long to decide."""
        if len(text) <= self._max_length:
            return self._compiled.fullmatch(text) is not None
        return self._linear is not None and self._linear.fullmatch(text) is not None

    def starts(self, text: str) -> bool:
        """Return whether the pattern matches a beginning of `text`; False for a text too long to decide."""
        if len(text) <= self._max_length:
            return self._compiled.match(text) is not None
        return self._linear is not None and self._linear.match(text) is not None

    @property
    def is_linear(self) -> bool:
        """Whether RE2 matches short texts, too."""
        return self._max_length == 0


@lru_cache(maxsize=1024)
def matcher(pattern: str) -> Matcher:
    """Return the cached matcher of a pattern.

    Raises:
        ValueError: see `Matcher`.
    """
    return Matcher(pattern)


@lru_cache(maxsize=1024)
def glob(pattern: str, *, classes: bool = True) -> re.Pattern[str]:
    """Return a compiled pattern of whole texts in which `*` stands for any text, `?` for a character, and,
    with `classes`, `[…]` for one of several.

    Each `*` takes the shortest text that fits, and is not tried again.
    """
    return re.compile(fnmatch.translate(pattern if classes else pattern.replace("[", "[[]")))


def _linear_matcher(pattern: str) -> Any | None:
    """Return the pattern compiled by RE2, None if RE2 does not support it (look-around, back-references)."""
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(_TOKEN.sub(_translated, pattern), options)
    except re2.error:
        return None


def _translated(token: re.Match[str]) -> str:
    text = token[0]
    if text[0] == "[":
        return _ESCAPE.sub(lambda escape: _CLASSES_IN_SET.get(escape[0], escape[0]), text)
    return _CLASSES.get(text, text)


def _freedom(parsed: Iterable[tuple[object, object]]) -> float:
    """Return the number of attempts of a backtracking matcher, as a power of the text's length."""
    return sum(_freedom_of(opcode, value) for opcode, value in parsed)


def _freedom_of(opcode: Any, value: Any) -> float:
    if opcode in _REPEATS:
        low, high, part = value
        inside = _freedom(part)
        if all(opcode in _ASSERTIONS for opcode, _ in part):  # consumes nothing: an iteration changes nothing
            return inside
        if high is op.MAXREPEAT:
            return math.inf if inside else 1.0
        choices: int = high - low + 1
        return inside * int(high) + (1.0 if choices > _MIN_LONG_REPEAT else _bits(choices))
    if opcode is op.SUBPATTERN:
        return _freedom(value[3])
    if opcode is op.BRANCH:
        return max(map(_freedom, value[1])) + _bits(len(value[1]))
    if opcode in _ASSERTIONS:
        inside = _freedom(value[1])
        return inside if inside >= _MAX_FREEDOM else 0.0  # a successful assertion is not tried again
    if opcode in (op.ATOMIC_GROUP, op.POSSESSIVE_REPEAT, op.GROUPREF_EXISTS):
        return math.inf  # rare, not analysed
    return 0.0


def _bits(choices: int) -> float:
    return math.log(choices, 2) / _BITS_OF_A_LENGTH
