"""Requests as browsers send them for pages of other sites, to every route of a real server.

`test_chromium.py` sends them with a browser. Here each header is set by hand, for browsers that send fewer
headers too.
"""

# ruff: noqa: F811 - fixtures are imported
from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.hostile.local_api import Served, api, open_api, serving  # noqa: F401 - fixtures
from tests.hostile.routes import BODY, FORM, Route

PAGES = (
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},  # another port or a subdomain
    {"Origin": "http://evil.example"},
    {"Origin": "http://localhost:1"},
    {"Origin": "null"},  # a sandboxed frame
)
NAMES = ("evil.example", "evil.example:8004", "localhost.evil.example", "0.0.0.0", "a, localhost", "127.1")
LOCAL_NAMES = ("localhost", "LocalHost:1", "a.localhost", "127.0.0.1", "127.9.9.9:80", "[::1]:8004")
CREATE = Route("stacks.create", "POST", "/v1/demo/stacks", BODY)


def test_no_other_site_changes_anything(api: Served) -> None:
    before = api.contents()
    for route in api.routes():
        for headers in PAGES if route.is_unsafe else ():
            assert api.status(route, dict(headers)) == 403, (route, headers)
    assert api.contents() == before


def test_an_answer_to_another_site_gives_it_no_permission(api: Served) -> None:
    page = {"Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"}
    preflight = page | {
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Private-Network": "true",
    }
    for route in api.routes():
        for method in (route.method, "OPTIONS"):
            tried = Route(route.endpoint, method, route.path, b"" if method == "OPTIONS" else route.body)
            if route.endpoint.startswith("events.stream") and method == "GET" and api.mode == "token":
                continue  # without end; the next test reads its headers
            head = api.send(tried, preflight).partition(b"\r\n\r\n")[0].lower()
            assert head, tried
            assert b"access-control-" not in head, tried


def test_pages_of_other_sites_do_not_read_with_credentials_of_the_browser(api: Served) -> None:
    """The status of a response would tell a page which stacks exist. A link that a user follows is served."""
    show = Route("stacks.show", "GET", "/v1/demo/stacks/victim")
    embedded = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "script"}
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert api.status(show, embedded) == (302 if api.mode == "token" else 403)
    assert api.status(show, link) == 302
    assert api.status(show, link | {"Sec-Fetch-Dest": "iframe"}) == (302 if api.mode == "token" else 403)


def test_a_body_needs_the_type_json_if_the_browser_adds_the_credentials(api: Served) -> None:
    before = api.contents()
    kinds = ("text/plain", "text/plain; a=application/json", FORM, "multipart/form-data; boundary=x", "")
    for route in api.routes():
        if not route.body or route.endpoint.startswith("cfn."):
            continue
        for kind in kinds if api.mode != "token" else ():
            answered = api.send(route, {"Content-Type": kind})
            assert answered.split(b" ")[1] == b"415", (route, kind)
            message = json.loads(answered.partition(b"\r\n\r\n")[2])["error"]["message"]
            assert "requires the header Content-Type: application/json" in message
    assert api.contents() == before


def test_the_own_page_and_other_clients_are_served(api: Served) -> None:
    own = {"Origin": f"http://localhost:{api.port}", "Sec-Fetch-Site": "same-origin"}
    for number, headers in enumerate(({}, own, {"Sec-Fetch-Site": "none"})):
        body = BODY.replace(b"intruder", b"own-%d" % number)
        assert api.status(Route("stacks.create", "POST", "/v1/demo/stacks", body), dict(headers)) == 201
    if api.mode == "token":
        text = Route("stacks.create", "POST", "/v1/demo/stacks", BODY.replace(b"intruder", b"plain"))
        assert api.status(text, {"Content-Type": "text/plain"}) == 201


def test_a_foreign_name_reaches_no_route(open_api: Served) -> None:
    """A page can give its own name the address of this machine (DNS rebinding)."""
    before = open_api.contents()
    for route in open_api.routes():
        for name in NAMES:
            assert open_api.status(route, {"Host": name}) == 421, (route, name)
    assert open_api.contents() == before


def test_the_own_page_behind_a_proxy_that_replaces_the_host_is_served(api: Served) -> None:
    own = {"Origin": "https://console.example", "Sec-Fetch-Site": "same-origin"}
    body = BODY.replace(b"intruder", b"console")
    create = Route("stacks.create", "POST", "/v1/demo/stacks", body)
    assert api.status(create, own) == (403 if api.mode == "none" else 201)


def test_allowed_names_and_origins_are_served(
    new_database: Callable[[], str], valkey_server: Any, broker_numbers: Iterator[int], tmp_path: Path
) -> None:
    """For a name other than loopback, browsers omit the headers with GET: such queries are rejected."""
    settings = {"allowed_hosts": "api.example, b.example", "allowed_origins": "https://console.example"}
    broker = valkey_server.url(next(broker_numbers))
    with serving("none", new_database, broker, tmp_path, **settings) as api:
        host = {"Host": "API.example:8004"}
        assert api.status(Route("", "GET", "/v1/demo/stacks"), dict(host)) == 200
        assert api.status(Route("", "GET", "/v1/demo/stacks"), {"Host": "c.api.example"}) == 421
        queries = {route.method: route for route in api.routes() if route.is_query}
        assert api.status(queries["GET"], dict(host)) == 403
        assert api.status(queries["POST"], dict(host)) == 200
        page = {"Origin": "https://console.example", "Sec-Fetch-Site": "cross-site"}
        assert api.status(CREATE, page) == 409  # it exists: created by the query
        assert api.status(CREATE, page | {"Origin": "https://console.example.evil.example"}) == 403


@pytest.mark.parametrize("name", LOCAL_NAMES)
def test_loopback_names_are_served(open_api: Served, name: str) -> None:
    assert open_api.status(Route("", "GET", "/v1/demo/stacks"), {"Host": name}) == 200


def test_errors_have_the_format_of_the_interface(open_api: Served) -> None:
    page = {"Origin": "http://evil.example"}
    native = json.loads(open_api.send(CREATE, page).partition(b"\r\n\r\n")[2])
    assert (native["code"], native["error"]["type"]) == (403, "Forbidden")
    assert "ORCHESTRATOR_ALLOWED_ORIGINS" in native["error"]["message"]
    query = next(route for route in open_api.routes() if route.is_query and route.method == "GET")
    fault = ElementTree.fromstring(open_api.send(query, page).partition(b"\r\n\r\n")[2])
    assert fault.findtext("Error/Code") == "AccessDenied"
    as_json = Route("", "GET", f"{query.path}&ContentType=JSON")
    error = json.loads(open_api.send(as_json, page).partition(b"\r\n\r\n")[2])["ErrorResponse"]["Error"]
    assert error["Code"] == "AccessDenied"
    host = json.loads(open_api.send(CREATE, {"Host": "evil.example"}).partition(b"\r\n\r\n")[2])
    assert (host["code"], host["error"]["type"]) == (421, "HTTPMisdirectedRequest")
    assert "ORCHESTRATOR_ALLOWED_HOSTS" in host["error"]["message"]
