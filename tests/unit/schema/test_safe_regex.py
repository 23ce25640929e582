"""Patterns match as Python has it, and never take for ever."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.schema.safe_regex import Matcher

PATTERNS = [
    "(a+)+",
    "(a|b|ab)*",
    "(a|aa)+b?",
    "([a-c]+,)*[a-c]+",
    "(?i)(a+B)*",
    "(?s)(.+)*",
    "(.*)*",
    r"(\w+\s?)*",
    r"(\W\d*)*",
    "([^a]b*)*",
    "(a{0,2}b{2,}){1,3}c*",
    "(a*)*?b",
    r"^(a+)+$",
    r"(\ba+\b,?)*",
    r"(\Ba*)*b*",
    "a*a*a*b*",
    "(?:(?:a?){3}b)*",
    "((a+)+|)+",
    "a?a?a?a?" * 8 + "b",
]


@pytest.mark.parametrize("pattern", PATTERNS)
@given(text=st.text("abcB, 1\n", max_size=8))
def test_linear_matching_agrees_with_pythons_matcher(pattern, text):
    matcher = Matcher(pattern)
    assert matcher.is_linear
    assert matcher.matches(text) == (re.fullmatch(pattern, text) is not None)


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+b",
        "(a|a)*b",
        "(a|aa)+b",
        "(.*a){20}b",
        "a*a*a*a*a*a*a*b",
        "((a*)*)*b",
        "(?:a+){50,}b",
        "(a?){40}a{40}b",
    ],
)
def test_a_pattern_that_python_would_never_finish_is_answered(pattern):
    assert not Matcher(pattern).matches("a" * 2_000)
    assert not Matcher(pattern).matches("a" * 2_000 + "c")


@pytest.mark.parametrize(
    "pattern",
    ["[a-z]+", "[a-z][a-z0-9-]*", r"\d{1,3}(\.\d{1,3}){3}", "(?=.*[0-9])(?=.*[a-z])(?=.*[A-Z]).{8,}"],
)
def test_ordinary_patterns_are_left_to_python(pattern):
    assert not Matcher(pattern).is_linear


@pytest.mark.parametrize(
    "pattern",
    [r"(a+)+\1", "(?!b)(a+b?)*", "(?=(a+)+b)[ab]*", "((a{60}b?){60}){60}", "((?>a+)b?)+"],
)
def test_a_pattern_without_bound_that_re2_does_not_support_is_refused(pattern):
    with pytest.raises(ValueError, match="could take for ever to match"):
        Matcher(pattern)


@pytest.mark.parametrize("pattern", [".*.*", "a*[ab]*", "[a-z]+"])
def test_a_very_long_text_is_matched_quickly_with_any_pattern(pattern):
    assert Matcher(pattern).matches("a" * 30_000)
    assert not Matcher(pattern).matches("a" * 30_000 + "\n")


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"(\w+\s?)*", "caf\u00e9\u00a0cr\u00e8me"),
        (r"([\w-]+,?)*", "\u00e9t\u00e9,"),
        (r"(\d+)*\Z", "\u0663\u0664"),
        (r"(\S+ ?)*", "\u00e9 \u4e2d"),
        (r"(\W+)*", "\u00a0-\u2003"),
    ],
)
def test_linear_matching_knows_all_of_unicode(pattern: str, text: str) -> None:
    assert Matcher(pattern).is_linear
    assert Matcher(pattern).matches(text) == (re.fullmatch(pattern, text) is not None)
    assert Matcher(pattern).matches(text)


def test_a_repeated_assertion_consumes_nothing() -> None:
    """From a template for a Windows domain controller."""
    domain = Matcher(r"[A-Za-z0-9]+(?=[\.\-][a-zA-Z0-9])*\.[a-zA-z09]+")
    assert domain.matches("example.com")
    assert not domain.matches("example")
