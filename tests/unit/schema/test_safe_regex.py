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
    "(?!b)(a+b?)*",
    "(a+(?=b)b)*",
    "((?<!b)a+|b)*",
    "((?<=ab)c|a|ab)*",
    "(?=(a+)+b)[ab]*",
    "a?a?a?a?" * 8 + "b",
]


@pytest.mark.parametrize("pattern", PATTERNS)
@given(text=st.text("abcB, 1\n", max_size=8))
def test_the_walk_agrees_with_pythons_matcher(pattern, text):
    matcher = Matcher(pattern)
    assert matcher.walks
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
    assert not Matcher(pattern).walks


@pytest.mark.parametrize(
    "pattern", [r"(a+)+\1", "(?m)(a+)+^", "((a{60}b?){60}){60}", "(?i:(a+)+)+", "((?>a+)b?)+"]
)
def test_one_that_cannot_be_walked_is_refused(pattern):
    with pytest.raises(ValueError, match="could take for ever to match"):
        Matcher(pattern)


@pytest.mark.parametrize("pattern", [".*.*", "a*[ab]*", "[a-z]+"])
def test_a_very_long_text_is_answered_whatever_the_pattern(pattern):
    assert Matcher(pattern).matches("a" * 30_000)
    assert not Matcher(pattern).matches("a" * 30_000 + "\n")
