"""Patterns of callers are matched in bounded time, and compiled by a single module."""

from __future__ import annotations

import ast
import contextlib
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from orchestrator.engine.observation.policies import matches
from orchestrator.errors import InvalidTemplate, InvalidValue
from orchestrator.resources.builtin.random_string import RandomString
from orchestrator.resources.builtin.value import ValueResource
from orchestrator.resources.type_schema import list_types
from orchestrator.schema.constraints import constraint_from_hot
from orchestrator.schema.safe_regex import Matcher, glob, matching_budget
from orchestrator.template.resource_registry_entries import Reader
from tests.patience import slowness

TYPES = {kind.name: kind() for kind in (RandomString, ValueResource)}
ROOT = Path(__file__).parent.parent.parent
COMPILER = "orchestrator/schema/safe_regex.py"
FUNCTIONS = ("compile", "match", "fullmatch", "search", "sub", "split", "findall", "finditer")
KIT = "orchestrator/testing"  # patterns of tests
LONG_TEXT = "a" * 10_000
ELEMENTS = ("pattern", "text")  # elements of constants, in `constraint_checks.py` and `failure_kinds.py`
HOSTILE = [
    "(a+)+$",
    "(([A-Za-z:]*)*)*$\\d",
    "(a|a)*b",
    "a*a*a*a*a*a*b",
    "x*x*y",
    "(.*)(.*)(.*)b",
    "(?=(a+)+b)a",
    "(a*)*\\1b",
    "a{0,200}a{0,200}a{0,200}b",
    "(?:a?){60}a{60}",
]

PIECES = ["a", "b", ".", "*", "+", "?", "(", ")", "|", "{2,9}", "{1,}", "[ab]", "\\w", "^", "$", "(?:"]


def patterns() -> Iterator[tuple[str, int, ast.expr]]:
    """Yield the patterns that the product passes to `re`: file, line, expression."""
    for folder in ("orchestrator", "api", "tasks"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = str(path.relative_to(ROOT))
            if name == COMPILER or name.startswith(KIT):
                continue
            for node in ast.walk(ast.parse(path.read_text())):
                call = node.func if isinstance(node, ast.Call) else None
                if isinstance(call, ast.Attribute) and isinstance(call.value, ast.Name):
                    assert isinstance(node, ast.Call)
                    if call.value.id == "re" and call.attr in FUNCTIONS and node.args:
                        yield name, node.lineno, node.args[0]


def is_constant(pattern: ast.expr) -> bool:
    """Whether a pattern is a text of the code, into which only escaped texts are inserted."""
    if isinstance(pattern, ast.Constant):
        return True
    if isinstance(pattern, ast.Name):
        return pattern.id.isupper() or pattern.id in ELEMENTS
    if isinstance(pattern, ast.JoinedStr):
        inserted = [part.value for part in pattern.values if isinstance(part, ast.FormattedValue)]
        return all(is_constant(value) or ast.unparse(value).startswith("re.escape(") for value in inserted)
    return False


def test_only_one_module_compiles_patterns_that_are_no_constants():
    assert [f"{name}:{line}" for name, line, pattern in patterns() if not is_constant(pattern)] == []
    names = [pattern.id for *_, pattern in patterns() if isinstance(pattern, ast.Name)]
    assert sorted(name for name in names if name in ELEMENTS) == sorted(ELEMENTS)


def matched(pattern: str, text: str) -> None:
    try:
        matcher = Matcher(pattern)
        matcher.matches(text)
        matcher.starts(text)
    except ValueError:  # not a pattern, or too many steps
        pass


def constrained(pattern: str, text: str) -> None:
    """Check a value of a parameter or property."""
    with contextlib.suppress(ValueError):
        constraint_from_hot({"allowed_pattern": pattern}).check(text, "string")


def listed(pattern: str, _text: str) -> None:
    with contextlib.suppress(InvalidValue):
        list_types(TYPES, name=pattern)


def registered(pattern: str, text: str) -> None:
    """Look a resource up in an environment with a wildcard."""
    body = {"resources": {pattern: {"hooks": "pre-create"}}}
    with contextlib.suppress(InvalidTemplate):
        entries = Reader(user=True).read(body)
        entries.hooks.matching(text)


ENTRIES: list[Callable[[str, str], object]] = [
    matched,
    constrained,
    listed,
    registered,
    lambda pattern, text: glob(pattern).match(text),
    lambda pattern, text: glob(pattern, classes=False).match(text),
    lambda pattern, text: matches(pattern, f"a.properties.{text}"),
]
MAX_SECONDS = 0.2  # of processor time, for a pattern of a request
CHARACTERS = ["a", "b", ".", "[ab]", "\\w", "[^a]", "\\d", "x", "é"]
REPEATS = ["*", "+", "?", "*?", "{2,9}", "{1,}", "{0,50}", "{3}", "{0,900}"]
GROUPS = ["(", "(?:", "(?=", "(?!", "(?i:"]


def random_pattern(dice: random.Random, depth: int = 3) -> str:
    """Return a valid pattern."""
    parts = []
    for _ in range(dice.randint(1, 4)):
        part = dice.choice(CHARACTERS)
        if depth and dice.random() < 0.3:
            branch = f"|{random_pattern(dice, depth - 1)}" if dice.random() < 0.4 else ""
            part = f"{dice.choice(GROUPS)}{random_pattern(dice, depth - 1)}{branch})"
        parts.append(part + (dice.choice(REPEATS) if dice.random() < 0.5 else ""))
    return "".join(parts)


def random_text(dice: random.Random) -> str:
    """Return a text of ten thousand characters."""
    kind = dice.choice(["a", "ab", "aab", "é", "random"])
    if kind == "random":
        return "".join(dice.choices("ab", k=10_000))
    return (kind * 10_000)[:10_000] + dice.choice(["", "b", "!"])


def require_bounded(entry: Callable[[str, str], object], pattern: str, text: str) -> None:
    """Have the pattern matched in bounded processor time, several times on a slow machine."""
    began = time.thread_time()
    with matching_budget():
        entry(pattern, text)
    seconds = time.thread_time() - began
    assert seconds < MAX_SECONDS or seconds < MAX_SECONDS * slowness(), (pattern, seconds)


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("text", [LONG_TEXT, LONG_TEXT + "!", "ab" * 5_000])
def test_hostile_patterns_are_matched_in_bounded_time(entry: Callable[[str, str], object], text: str):
    stars = ["*?" * 14 + "Z", "*a" * 60 + "Z", "s.properties.m." + "*?*" * 40 + "Z"]
    for pattern in [*HOSTILE, *stars]:
        require_bounded(entry, pattern, text)


def require_random_patterns_bounded(count: int) -> None:
    dice = random.Random("patterns")
    for number in range(count):
        pieces = "".join(dice.choices(PIECES, k=dice.randint(1, 100)))
        pattern = (random_pattern(dice) if number % 2 else pieces)[:200]
        text = random_text(dice)
        for entry in ENTRIES:
            require_bounded(entry, pattern, text)


def test_random_patterns_are_matched_in_bounded_time():
    require_random_patterns_bounded(200)


@pytest.mark.long
def test_many_random_patterns_are_matched_in_bounded_time():
    require_random_patterns_bounded(10_000)


def test_the_patterns_of_a_request_share_a_budget():
    constraint = constraint_from_hot({"allowed_pattern": "(a|b)*a(a|b){60}"})
    text = "ab" * 5_000
    with matching_budget():
        answers = [constraint.check(text, "string") for _ in range(1_000)]
    assert "does not match" in str(answers[0])
    assert "the patterns of this request need more than 20,000,000 steps" in str(answers[-1])
    assert "does not match" in str(constraint.check(text, "string"))  # another request


def test_a_filter_of_types_matches_from_the_start():
    names = list_types(TYPES, name="OS::Heat::Random")
    assert names == ["OS::Heat::RandomString"]
    assert list_types(TYPES, name="Random") == []
    assert list_types(TYPES, name="(") == []
