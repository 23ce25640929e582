"""Match texts against patterns of callers in bounded time. Only this module compiles such patterns.

Heat uses Python's regular expressions, whose backtracking takes exponential time for a pattern such as
``(a+)+b``, and holds the interpreter meanwhile. Python matches patterns with a single open repetition; RE2
matches all others, in time linear in the text. Patterns that RE2 does not support (look-around,
back-references) are matched by Python while the text is short enough.

All patterns of a request share a budget of steps (`matching_budget`): a step is a few nanoseconds.
"""

from __future__ import annotations

import fnmatch
import math
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property, lru_cache
from re import _constants as op  # type: ignore[attr-defined]  # the parse tree of a pattern is not public
from re import _parser  # type: ignore[attr-defined]
from typing import Any, Final, NamedTuple

import re2

from orchestrator.schema.request_budgets import budgets

MAX_STEPS: Final = 20_000_000  # of a request: about a tenth of a second without other threads
_STEPS_OF_A_TRY: Final = 10  # of Python's matcher
_STEPS_OF_A_CHARACTER: Final = 1_000  # of a pattern that is compiled
_STEPS_OF_AN_INSTRUCTION: Final = 100  # of a program that RE2 compiles
_MAX_PROGRAM_BYTES: Final = 2 << 20  # of a pattern compiled by RE2, with its states
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
_ASCII_SPACES: Final = r"\s\x0b\x1c-\x1f"
_ASCII_CLASSES: Final = {r"\s": f"[{_ASCII_SPACES}]", r"\S": f"[^{_ASCII_SPACES}]", r"\Z": r"\z"}
_ASCII_CLASSES_IN_SET: Final = {r"\s": _ASCII_SPACES}
_ASSERTIONS: Final = (op.ASSERT, op.ASSERT_NOT)
_TOKEN: Final = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\.", re.DOTALL)


class PatternsTooExpensive(ValueError):
    """The patterns of a request need too many steps."""

    def __init__(self) -> None:
        """Name the limit."""
        super().__init__(
            f"the patterns of this request need more than {MAX_STEPS:,} steps to match their texts: use "
            "shorter texts, fewer patterns, or patterns with fewer repetitions"
        )


@contextmanager
def matching_budget() -> Iterator[None]:
    """Limit the steps in which patterns are compiled and matched by this thread in the block; a block inside
    another shares its budget.
    """
    if budgets.pattern_steps is not None:
        yield
        return
    budgets.pattern_steps = MAX_STEPS
    try:
        yield
    finally:
        budgets.pattern_steps = None


def _charge(steps: float) -> None:
    """Subtract steps from the budget, if there is one.

    Raises:
        PatternsTooExpensive: they are too many.
    """
    left = budgets.pattern_steps
    rest = (MAX_STEPS if left is None else left) - steps
    if left is not None:
        budgets.pattern_steps = max(rest, 0)
    if rest < 0:
        raise PatternsTooExpensive


class Matcher:
    """A compiled pattern."""

    def __init__(self, pattern: str) -> None:
        """Compile the pattern.

        Raises:
            ValueError: not a regular expression, or a pattern that backtracks without bound and that RE2 does
                not support.
            PatternsTooExpensive: the budget of the request is used up.
        """
        _charge(_STEPS_OF_A_CHARACTER * len(pattern))
        try:
            with warnings.catch_warnings():
                # A later Python may read "[[a]" differently.
                warnings.simplefilter("ignore", FutureWarning)
                self._compiled = re.compile(pattern)
                parsed = _parser.parse(pattern)
        except (re.error, OverflowError, RecursionError) as error:
            raise ValueError(f'"{pattern}" is not a regular expression: {error}') from None
        self._pattern, self._freedom = pattern, _effort(parsed).cost
        # The longest text for Python: the number of attempts grows with this power of the length.
        tries = _MAX_TRIES ** (1 / max(self._freedom, 1.0))
        self._max_length = 0 if self._freedom >= _MAX_FREEDOM else tries
        if not self._max_length and not self.is_linear:
            raise ValueError(
                f'"{pattern}" could take for ever to match: it repeats repetitions in a form that RE2 does '
                "not support"
            )

    def matches(self, text: str) -> bool:
        """Return whether the pattern matches all of `text`; False for a text too long to decide.

        Raises:
            PatternsTooExpensive: the budget of the request is used up.
        """
        program = self._program(text)
        return program is not None and program.fullmatch(text) is not None

    def starts(self, text: str) -> bool:
        """Return whether the pattern matches a beginning of `text`; False for a text too long to decide.

        Raises:
            PatternsTooExpensive: the budget of the request is used up.
        """
        program = self._program(text)
        return program is not None and program.match(text) is not None

    @property
    def is_linear(self) -> bool:
        """Whether RE2 matches texts, and not Python."""
        return self._freedom > 1.0 and self._ascii is not None

    @cached_property
    def _ascii(self) -> Any | None:
        """RE2's program for texts in ASCII: if the pattern has classes, it is much smaller than the other."""
        return _linear_matcher(self._pattern, _ASCII_CLASSES, _ASCII_CLASSES_IN_SET)

    @cached_property
    def _unicode(self) -> Any | None:
        return _linear_matcher(self._pattern, _CLASSES, _CLASSES_IN_SET)

    def _program(self, text: str) -> Any | None:
        """Return the matcher for a text, after its steps are charged; None for a text too long to decide."""
        if self.is_linear:
            program = self._ascii if text.isascii() and self._pattern.isascii() else self._unicode
            if program is not None:
                _charge(len(text) * program.programsize)
                return program
        if len(text) > self._max_length:
            return None
        _charge(_STEPS_OF_A_TRY * max(len(text), 1) ** max(self._freedom, 1.0))
        return self._compiled


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


def _linear_matcher(pattern: str, classes: Mapping[str, str], in_set: Mapping[str, str]) -> Any | None:
    """Return the pattern compiled by RE2, None if RE2 does not support it (look-around, back-references, a
    program that is too large).
    """
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MAX_PROGRAM_BYTES

    def translated(token: re.Match[str]) -> str:
        text = token[0]
        if text[0] == "[":
            return _ESCAPE.sub(lambda escape: in_set.get(escape[0], escape[0]), text)
        return classes.get(text, text)

    try:
        program = re2.compile(_TOKEN.sub(translated, pattern), options)
    except re2.error:
        return None
    _charge(_STEPS_OF_AN_INSTRUCTION * program.programsize)
    return program


class Effort(NamedTuple):
    """The attempts of a backtracking matcher, as powers of the text's length."""

    freedom: float  # of a part: the ends that it may have
    cost: float  # of all attempts, with those inside assertions and back-references


def _effort(parsed: Iterable[tuple[object, object]]) -> Effort:
    """Return the effort of a sequence: each part is tried for each end of the parts before it."""
    freedom = cost = 0.0
    for opcode, value in parsed:
        part = _effort_of(opcode, value)
        cost = max(cost, freedom + part.cost)
        freedom += part.freedom
    return Effort(freedom, max(cost, freedom))


def _effort_of(opcode: Any, value: Any) -> Effort:
    if opcode in _REPEATS:
        return _repeated(*value)
    if opcode is op.SUBPATTERN:
        return _effort(value[3])
    if opcode is op.BRANCH:
        parts, bits = [_effort(part) for part in value[1]], _bits(len(value[1]))
        return Effort(bits + max(part.freedom for part in parts), bits + max(part.cost for part in parts))
    if opcode in _ASSERTIONS:
        inside = _effort(value[1])
        # A successful assertion is not tried again.
        return Effort(inside.freedom if inside.freedom >= _MAX_FREEDOM else 0.0, inside.cost)
    if opcode is op.GROUPREF:
        return Effort(0.0, 1.0)  # compares as many characters
    if opcode in (op.ATOMIC_GROUP, op.POSSESSIVE_REPEAT, op.GROUPREF_EXISTS):
        return Effort(math.inf, math.inf)  # rare, not analysed
    return Effort(0.0, 0.0)


def _repeated(low: Any, high: Any, part: Any) -> Effort:
    inside = _effort(part)
    if all(opcode in _ASSERTIONS for opcode, _ in part):  # consumes nothing: an iteration changes nothing
        return inside
    if high is op.MAXREPEAT:
        freedom = math.inf if inside.freedom else 1.0
        return Effort(freedom, freedom + inside.cost)
    choices = int(high) - int(low) + 1
    freedom = inside.freedom * int(high) + (1.0 if choices > _MIN_LONG_REPEAT else _bits(choices))
    return Effort(freedom, freedom + inside.cost - inside.freedom)


def _bits(choices: int) -> float:
    return math.log(choices, 2) / _BITS_OF_A_LENGTH
