"""Patterns of callers are matched in bounded time, and compiled by a single module."""

from __future__ import annotations

import ast
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from orchestrator.engine.observation.policies import matches
from orchestrator.resources.builtin.random_string import RandomString
from orchestrator.resources.builtin.value import ValueResource
from orchestrator.resources.type_schema import list_types
from orchestrator.schema.safe_regex import Matcher, glob
from tests.patience import took_at_most

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
            if name == COMPILER or name.startswith((KIT, "orchestrator/simulated")):
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
    except ValueError:
        return
    matcher.matches(text)
    matcher.starts(text)


ENTRIES: list[Callable[[str, str], object]] = [
    matched,
    lambda pattern, text: glob(pattern).match(text),
    lambda pattern, text: matches(pattern, f"a.properties.{text}"),
    lambda pattern, _: list_types(TYPES, name=pattern),
]


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("text", [LONG_TEXT, LONG_TEXT + "!", "ab" * 5_000])
def test_hostile_patterns_are_matched_in_bounded_time(entry: Callable[[str, str], object], text: str):
    stars = ["*?" * 14 + "Z", "*a" * 60 + "Z", "s.properties.m." + "*?*" * 40 + "Z"]
    for pattern in [*HOSTILE, *stars]:
        began = time.thread_time()
        entry(pattern, text)
        assert time.thread_time() - began < 0.5, pattern


@pytest.mark.parametrize("entry", ENTRIES)
def test_random_patterns_are_matched_in_bounded_time(entry: Callable[[str, str], object]):
    dice = random.Random("patterns")
    began = time.monotonic()
    for _ in range(400):
        pieces = [
            "a",
            "b",
            ".",
            "*",
            "+",
            "?",
            "(",
            ")",
            "|",
            "{2,9}",
            "{1,}",
            "[ab]",
            "\\w",
            "^",
            "$",
            "(?:",
        ]
        pattern = "".join(dice.choices(pieces, k=dice.randint(1, 60)))[:200]
        entry(pattern, LONG_TEXT + dice.choice(["", "b", "!"]))
    assert took_at_most(began, 30.0)


def test_a_filter_of_types_matches_from_the_start():
    names = list_types(TYPES, name="OS::Heat::Random")
    assert names == ["OS::Heat::RandomString"]
    assert list_types(TYPES, name="Random") == []
    assert list_types(TYPES, name="(") == []
