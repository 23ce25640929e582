"""`make_url` (docs/internals/hot-language.md §5.2)."""

from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from hypothesis import given as over
from hypothesis import strategies as st

from orchestrator.template.definition import UNKNOWN
from orchestrator.template.functions import urls
from tests.unit.template.functions_stub import UNDECIDED, failed, given, refused, resolved


@pytest.mark.parametrize(
    ("parts", "url"),
    [
        (
            {
                "scheme": "http",
                "host": "::1",
                "port": 80,
                "path": "/a b",
                "query": {"a": "b/c d"},
                "fragment": "f",
            },
            "http://[::1]:80/a%20b?a=b/c+d#f",
        ),
        ({}, ""),
        ({"host": "x"}, "//x"),
        ({"scheme": "http"}, "http://"),
        ({"scheme": "http", "path": "a"}, "http:///a"),
        ({"scheme": "http", "path": "//a"}, "http://a"),
        ({"scheme": "mailto", "path": "a@b"}, "mailto:a%40b"),
        ({"scheme": "file", "host": "", "path": "/a"}, "file:///a"),
        ({"scheme": "x", "query": {"a": 1}}, "x:?a=1"),
        ({"path": "a"}, "a"),
        ({"path": "//x"}, "//x"),
        ({"host": "h", "path": "a"}, "//h/a"),
        ({"host": "h", "path": ""}, "//h"),
        ({"host": "h", "path": "/a?b#c%20é:@"}, "//h/a%3Fb%23c%2520%C3%A9%3A%40"),
        ({"port": 80}, "//:80"),
        ({"host": "h", "port": "80"}, "//h:80"),
        ({"username": "u"}, "//u@"),
        ({"host": "h", "username": "u@:/é", "password": "p@:/ %"}, "//u%40%3A%2F%C3%A9:p%40%3A%2F%20%25@h"),
        ({"host": "h", "password": "p"}, "//:p@h"),
        ({"host": "h", "username": "u", "password": ""}, "//u@h"),
        ({"host": "h", "username": "", "password": ""}, "//h"),
        ({"host": "[::1]"}, "//[::1]"),
        ({"host": "fe80::1%eth0"}, "//[fe80::1%25eth0]"),
        ({"host": "[a]"}, "//a"),
        ({"host": "["}, "//%5B"),
        ({"host": "a b"}, "//a%20b"),
        ({"host": "h", "query": {}}, "//h"),
        ({"host": "h", "query": {"b": True, "a": None, "c": ["x"]}}, "//h?b=True&a=None&c=%5B%27x%27%5D"),
        ({"host": "h", "query": {"a&b=": "c&=+?#é %"}}, "//h?a%26b%3D=c%26%3D%2B%3F%23%C3%A9+%25"),
        ({"fragment": "a b#c?/é"}, "#a%20b%23c%3F/%C3%A9"),
        ({"host": given("text"), "port": given("number"), "query": given("map")}, "//a%2Cb:7?k=v"),
    ],
)
def test_make_url(parts, url):
    assert not refused({"make_url": parts})
    assert resolved({"make_url": parts}) == url


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ("x", 'The arguments to "make_url" must be a map'),
        (None, 'The arguments to "make_url" must be a map'),
        (given("map"), 'The arguments to "make_url" must be a map'),
        ({"z": 1, "b": 2, "host": "h"}, 'Invalid arguments to "make_url": b, z'),
        *[
            ({"host": "h", name: value}, f'The "{name}" argument to "make_url" must be a string')
            for name in ("scheme", "username", "password", "path", "fragment", "host")
            for value in (5, None, ["x"], {"a": 1})
        ],
        ({"query": "a=b"}, 'The "query" argument to "make_url" must be a map'),
        ({"query": None}, 'The "query" argument to "make_url" must be a map'),
        ({"port": 0, "path": 5}, "Invalid URL port 0, must be in range 1-65535"),
        ({"port": "65536"}, "Invalid URL port 65536, must be in range 1-65535"),
        (
            {"host": "h", "port": "x"},
            "Invalid URL port \"x\" for make_url called with {'host': 'h', 'port': 'x'}",
        ),
        ({"host": 5, "scheme": 5, "port": 0}, 'The "scheme" argument to "make_url" must be a string'),
        ({"host": given("none"), "query": given("none"), "port": given("none")}, ""),
    ],
)
def test_unresolved_arguments_that_make_url_refuses(parts, message):
    assert refused({"make_url": parts}) == message


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"host": given("none")}, 'The "host" argument to "make_url" must be a string'),
        ({"query": given("list")}, 'The "query" argument to "make_url" must be a map'),
        ({"port": given("text")}, "Invalid URL port \"a,b\" for make_url called with {'port': 'a,b'}"),
        ({"scheme": "a:b"}, "URL \"scheme\" should not contain ':'"),
    ],
)
def test_values_that_make_url_refuses(parts, message):
    assert failed({"make_url": parts}) == message


def test_a_password_is_never_in_a_message():
    message = failed({"make_url": {"password": given("text"), "port": given("list")}})
    assert "a,b" not in message
    message = failed({"make_url": {"password": given("text"), "port": given("text"), "username": "u"}})
    assert message == (
        'Invalid URL port "a,b" for make_url called with '
        "{'password': '******', 'port': 'a,b', 'username': 'u'}"
    )


def test_a_url_with_an_unknown_part_is_unknown():
    assert resolved({"make_url": {"host": UNDECIDED}}, strict=False) is UNKNOWN
    assert resolved({"make_url": {"query": {"a": UNDECIDED}}}, strict=False) is UNKNOWN


@over(st.text("ab/ %é?#@", max_size=8), st.dictionaries(st.text(min_size=1), st.text(min_size=1), max_size=3))
def test_url_parts_can_be_parsed_again(path, query):
    made = urlsplit(urls.make_url({"scheme": "http", "host": "h", "path": path, "query": query}))
    assert unquote(made.path).removeprefix("/") == path.removeprefix("/")
    assert {name: values[0] for name, values in parse_qs(made.query).items()} == query
