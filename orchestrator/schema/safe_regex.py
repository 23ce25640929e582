"""Match whole texts against patterns written by strangers, without ever taking for ever.

Python's matcher goes back and tries again, which takes exponential time for a pattern like ``(a+)+b``.
Patterns that nest or pile up repetitions are therefore matched by walking all alternatives at once, in time
proportional to the text; the plain ones, nearly all, are left to Python.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Iterable
from functools import lru_cache
from re import _constants as op  # type: ignore[attr-defined]  # the parsed form of a pattern is not public
from re import _parser  # type: ignore[attr-defined]
from typing import Any, Final

Test = Callable[[str], bool]
Guard = Callable[[str, int], bool]

_MOST_STATES: Final = 5_000
_MOST_TRIES: Final = 1e8  # a second or two
_TOO_FREE: Final = 3.0  # three open repetitions one after another: the cube of the text's length
_LONG_REPEAT: Final = 16
_BITS_OF_A_LENGTH: Final = 10.0  # a text of some thousand characters
_REPEATS: Final = frozenset({op.MAX_REPEAT, op.MIN_REPEAT})


class Matcher:
    """One pattern."""

    def __init__(self, pattern: str) -> None:
        """Read the pattern.

        Raises:
            ValueError: it is no regular expression, or one that could take for ever and cannot be walked.
        """
        try:
            with warnings.catch_warnings():
                # "[[a]", say: a later Python may read it differently.
                warnings.simplefilter("ignore", FutureWarning)
                self._compiled = re.compile(pattern)
                parsed = _parser.parse(pattern)
        except (re.error, OverflowError, RecursionError) as error:
            raise ValueError(f'"{pattern}" is not a regular expression: {error}') from None
        self._machine: _Machine | None = None
        freedom = _freedom(parsed)
        # The longest text that Python may try: what it takes grows with this power of the length.
        self._long = 0 if freedom >= _TOO_FREE else _MOST_TRIES ** (1 / max(freedom, 1.0))
        if freedom > 1.0:
            try:
                self._machine = _Machine(parsed, self._compiled.flags)
            except NotImplementedError as error:
                if freedom >= _TOO_FREE:
                    raise ValueError(f'"{pattern}" could take for ever to match: {error}') from None

    def matches(self, text: str) -> bool:
        """Whether the pattern matches all of `text`; of a text too long to find out it does not."""
        if len(text) <= self._long:
            return self._compiled.fullmatch(text) is not None
        return self._machine is not None and self._machine.matches(text)

    @property
    def walks(self) -> bool:
        """Whether short texts, too, are walked rather than tried."""
        return self._long == 0


@lru_cache(maxsize=1024)
def matcher(pattern: str) -> Matcher:
    """Return the matcher of a pattern, made once.

    Raises:
        ValueError: see `Matcher`.
    """
    return Matcher(pattern)


def _freedom(parsed: Iterable[tuple[Any, Any]]) -> float:
    """Return how many times over a backtracking matcher may have to try, as a power of the text's length."""
    return sum(_freedom_of(kind, value) for kind, value in parsed)


def _freedom_of(kind: Any, value: Any) -> float:
    if kind in _REPEATS:
        low, high, part = value
        inside = _freedom(part)
        if high is op.MAXREPEAT:
            return math.inf if inside else 1.0
        choices: int = high - low + 1
        return inside * int(high) + (1.0 if choices > _LONG_REPEAT else _bits(choices))
    if kind is op.SUBPATTERN:
        return _freedom(value[3])
    if kind is op.BRANCH:
        return max(map(_freedom, value[1])) + _bits(len(value[1]))
    if kind in (op.ASSERT, op.ASSERT_NOT):
        inside = _freedom(value[1])
        return inside if inside >= _TOO_FREE else 0.0  # once it has matched it is not tried again
    if kind in (op.ATOMIC_GROUP, op.POSSESSIVE_REPEAT, op.GROUPREF_EXISTS):
        return math.inf  # rare; not worth the thought
    return 0.0


def _bits(choices: int) -> float:
    return math.log(choices, 2) / _BITS_OF_A_LENGTH


class _Machine:
    """States with steps that take a character and jumps that take none; all are walked at once."""

    def __init__(self, parsed: Any, flags: int) -> None:
        if flags & (re.MULTILINE | re.ASCII):
            raise NotImplementedError("it repeats repetitions, with flags that are not known here")
        self._flags = flags
        self._jumps: list[list[tuple[int, Guard | None]]] = []
        self._steps: list[tuple[Test, int] | None] = []
        start = self._state()
        self._start, self._end = start, self._sequence(parsed, start)

    def matches(self, text: str, begin: int = 0, *, whole: bool = True) -> bool:
        """Whether the end is reached from `begin` with all of `text`, or (not `whole`) with some of it."""
        alive = self._reach({self._start}, text, begin)
        for index in range(begin, len(text)):
            if not whole and self._end in alive:
                return True
            char = text[index]
            stepped = {step[1] for step in map(self._steps.__getitem__, alive) if step and step[0](char)}
            if not stepped:
                return False
            alive = self._reach(stepped, text, index + 1)
        return self._end in alive

    def _reach(self, states: set[int], text: str, index: int) -> set[int]:
        todo = list(states)
        while todo:
            for target, guard in self._jumps[todo.pop()]:
                if target not in states and (guard is None or guard(text, index)):
                    states.add(target)
                    todo.append(target)
        return states

    def _state(self) -> int:
        if len(self._jumps) >= _MOST_STATES:
            raise NotImplementedError("it is too large")
        self._jumps.append([])
        self._steps.append(None)
        return len(self._jumps) - 1

    def _sequence(self, parsed: Any, start: int) -> int:
        for kind, value in parsed:
            start = self._element(kind, value, start)
        return start

    def _element(self, kind: Any, value: Any, start: int) -> int:
        if kind in _REPEATS:
            return self._repeat(value, start)
        if kind is op.SUBPATTERN and not value[1] and not value[2]:
            return self._sequence(value[3], start)
        end = self._state()
        if kind is op.BRANCH:
            for part in value[1]:
                first = self._state()
                self._jumps[start].append((first, None))
                self._jumps[self._sequence(part, first)].append((end, None))
        elif kind in (op.ASSERT, op.ASSERT_NOT):
            self._jumps[start].append((end, self._look(value, kind is op.ASSERT)))
        elif kind is op.AT and value in _GUARDS:
            self._jumps[start].append((end, _GUARDS[value]))
        else:
            self._steps[start] = (self._test(kind, value), end)
        return end

    def _repeat(self, value: Any, start: int) -> int:
        low, high, part = value
        for _ in range(low):
            start = self._sequence(part, start)
        end = self._state()
        if high is op.MAXREPEAT:
            loop = self._state()
            self._jumps[start].append((loop, None))
            self._jumps[loop].append((end, None))
            first = self._state()
            self._jumps[loop].append((first, None))
            self._jumps[self._sequence(part, first)].append((loop, None))
            return end
        for _ in range(high - low):
            self._jumps[start].append((end, None))
            first = self._state()
            self._jumps[start].append((first, None))
            start = self._sequence(part, first)
        self._jumps[start].append((end, None))
        return end

    def _look(self, value: Any, wanted: bool) -> Guard:
        """Return the guard of what looks ahead, or behind over a known number of characters."""
        direction, part = value
        inner = _Machine(part, self._flags)
        if direction > 0:
            return lambda text, index: inner.matches(text, index, whole=False) == wanted
        width = part.getwidth()[0]
        return lambda text, index: (index >= width and inner.matches(text[:index], index - width)) == wanted

    def _test(self, kind: Any, value: Any) -> Test:
        if kind not in _CHARACTERS:
            raise NotImplementedError("it repeats repetitions, and looks back at what was matched")
        return _single(kind, value, self._flags)


def _single(kind: Any, value: Any, flags: int) -> Test:
    if flags & re.IGNORECASE:
        plain = _single(kind, value, flags & ~re.IGNORECASE)
        return lambda char: plain(char) or plain(char.lower()) or plain(char.upper())
    if kind is op.ANY:
        return (lambda _: True) if flags & re.DOTALL else (lambda char: char != "\n")
    if kind is op.LITERAL:
        return lambda char: ord(char) == value
    if kind is op.NOT_LITERAL:
        return lambda char: ord(char) != value
    negated = value[0][0] is op.NEGATE
    members = [_member(*item) for item in value[1 if negated else 0 :]]
    return lambda char: any(member(char) for member in members) != negated


def _member(kind: Any, value: Any) -> Test:
    if kind is op.LITERAL:
        return lambda char: ord(char) == value
    if kind is op.RANGE:
        low, high = value
        return lambda char: low <= ord(char) <= high
    return _CATEGORIES[value]


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_"


def _at_boundary(text: str, index: int) -> bool:
    before = index > 0 and _is_word(text[index - 1])
    return before != (index < len(text) and _is_word(text[index]))


_CHARACTERS: Final = frozenset({op.ANY, op.LITERAL, op.NOT_LITERAL, op.IN})
_CATEGORIES: Final[dict[Any, Test]] = {
    op.CATEGORY_DIGIT: str.isdecimal,
    op.CATEGORY_NOT_DIGIT: lambda char: not char.isdecimal(),
    op.CATEGORY_SPACE: str.isspace,
    op.CATEGORY_NOT_SPACE: lambda char: not char.isspace(),
    op.CATEGORY_WORD: _is_word,
    op.CATEGORY_NOT_WORD: lambda char: not _is_word(char),
}
_GUARDS: Final[dict[Any, Guard]] = {
    op.AT_BEGINNING: lambda _, index: index == 0,
    op.AT_BEGINNING_STRING: lambda _, index: index == 0,
    op.AT_END: lambda text, index: index == len(text) or (index == len(text) - 1 and text[index] == "\n"),
    op.AT_END_STRING: lambda text, index: index == len(text),
    op.AT_BOUNDARY: _at_boundary,
    op.AT_NON_BOUNDARY: lambda text, index: bool(text) and not _at_boundary(text, index),
}
