"""The mask hides secret values, not the maps and lists around them."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote

import pytest

from orchestrator.template.secret_values import (
    MAX_KNOWN,
    NO_SECRETS,
    SecretValues,
    both,
    values_at,
)

SECRET = "Tr0ub4dor &9"
KNOWN = SecretValues({SECRET})


def test_a_map_with_a_secret_stays_readable():
    value = {"user": "web", "login": {"password": SECRET, "port": 80}, "hosts": ["a", SECRET]}
    assert KNOWN.masked(value) == {
        "user": "web",
        "login": {"password": "******", "port": 80},
        "hosts": ["a", "******"],
    }
    assert NO_SECRETS.masked(value) is value


@pytest.mark.parametrize("before", ["", "x", "xy"])
def test_an_encoded_secret_is_found(before):
    text = f"{before}{SECRET}-and-so-on"
    lines = base64.encodebytes((text + "." * 99).encode()).decode()
    forms = [text, json.dumps({"a": text}), quote(text), base64.b64encode(text.encode()).decode(), lines]
    assert [KNOWN.masked(form) for form in forms] == ["******"] * len(forms)


def test_numbers_and_booleans_are_recognised_by_their_text():
    secrets = SecretValues.within({"port": 8080, "on": True}, ["x"])
    assert secrets.masked([8080, "8080", True, "x", "y", 80]) == ["******"] * 4 + ["y", 80]


def test_a_short_secret_hides_the_whole_value_of_a_provider():
    secrets = SecretValues({"ab"})
    assert secrets.masked(["ab", "abc"]) == ["******", "abc"]
    assert secrets.masked_output({"x": "abc"}) == "******"
    assert secrets.masked_output(None) is None
    assert secrets.may_be_in("anything")


def test_the_counterpart_of_a_secret_is_masked():
    assert KNOWN.masked({"a": "old", "b": 1}, like={"a": SECRET, "b": 1}) == {"a": "******", "b": 1}
    assert KNOWN.masked(["old", 1], like=[SECRET, 1]) == ["******", 1]
    assert KNOWN.masked(["old", 1], like=[SECRET]) == "******"
    assert KNOWN.masked({"a": "old"}, like=SECRET) == "******"
    assert KNOWN.masked(None, like=SECRET) is None


def test_a_secret_map_is_masked_as_a_whole():
    secrets = SecretValues.within({"sesame": {"a": 1}})
    assert secrets.masked({"x": {"sesame": {"a": 1}}, "y": "open"}) == {"x": "******", "y": "open"}


def test_a_key_may_be_secret():
    assert KNOWN.masked({SECRET: 1}) == {"******": 1}


def test_more_secrets_than_can_be_searched_for_hide_everything():
    many = SecretValues(str(number) for number in range(MAX_KNOWN + 1))
    assert both(KNOWN, many) is None
    assert both(None, KNOWN) is None
    assert both(KNOWN, NO_SECRETS) is KNOWN


def test_the_value_around_a_missing_place_is_used():
    value = {"a": {"b": [1]}, "c": 2}
    places = [("a", "b", 0), ("a", "x"), ("missing", 0)]
    assert list(values_at(value, places)) == [1, {"b": [1]}]
