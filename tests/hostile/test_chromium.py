"""Pages of an attacker in a real browser, against every route of an API on the same machine.

Each page tries fetch with and without CORS, forms, beacons and embedded elements. Nothing may change, and no
response may be readable.
"""

# ruff: noqa: F811 - fixtures are imported
from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.hostile.chromium import EVIL, Site, attack, program, sites
from tests.hostile.local_api import PASSWORD, Served, open_api, serving  # noqa: F401 - fixtures
from tests.hostile.routes import Route

pytestmark = pytest.mark.long

SIMPLE = frozenset({"GET", "HEAD", "POST"})  # methods without a preflight request


def address(page_host: str, page_site: Site, report_to: Site) -> str:
    """Return the address of the attacker's page."""
    report = quote(f"http://127.0.0.1:{report_to.port}/__report", safe="")
    return f"http://{page_host}:{page_site.port}/__page?report={report}"


def reached(site: Site, routes: list[Route]) -> None:
    """Check that the browser sent the requests, so that it was the API that rejected them."""
    seen = {(request.method, request.path) for request in site.requests}
    preflights = {path for method, path in seen if method == "OPTIONS"}
    for route in routes:
        assert (route.method, route.path) in seen or (
            route.method not in SIMPLE and route.path in preflights
        ), route


@pytest.fixture(scope="module", autouse=True)
def _browser() -> None:
    program()


@pytest.mark.parametrize("host", [EVIL, "127.0.0.1"], ids=["cross-site", "same-site"])
def test_a_page_of_another_origin_changes_and_reads_nothing(
    open_api: Served, host: str, tmp_path: Path
) -> None:
    before, routes = open_api.contents(), open_api.routes()
    with sites(open_api.port) as (api, other):
        page = address(host, other, other)
        report = attack(page, f"http://127.0.0.1:{api.port}", routes, other, tmp_path / "profile")
        assert report["origin"] == f"http://{host}:{other.port}"
        assert (report["readable"], report["loaded"]) == ([], [])
        reached(api, routes)
    assert open_api.contents() == before


def test_a_page_with_a_rebound_name_changes_and_reads_nothing(open_api: Served, tmp_path: Path) -> None:
    before, routes = open_api.contents(), open_api.routes()
    with sites(open_api.port) as (api, _):
        page = address(EVIL, api, api)
        report = attack(page, f"http://{EVIL}:{api.port}", routes, api, tmp_path / "profile")
        assert {status for *_, status in report["readable"]} == {421}
        assert report["loaded"] == []
        seen = {(request.method, request.path) for request in api.requests}
        assert seen >= {(route.method, route.path) for route in routes}
    assert open_api.contents() == before


def test_a_browser_with_a_stored_password_changes_and_reads_nothing(
    new_database: Callable[[], str], valkey_server: Any, broker_numbers: Iterator[int], tmp_path: Path
) -> None:
    broker = valkey_server.url(next(broker_numbers))
    with serving("basic", new_database, broker, tmp_path) as served, sites(served.port) as (api, other):
        before, routes = served.contents(), served.routes()
        challenge = served.send(Route("", "GET", "/v1/demo/stacks"), {"Authorization": ""}).decode()
        api.challenge = next(
            line.partition(": ")[2] for line in challenge.splitlines() if line.lower().startswith("www-auth")
        )
        page = address("127.0.0.1", other, other)  # Chromium withholds the password from other sites
        login = f"http://ada:{quote(PASSWORD)}@127.0.0.1:{api.port}/__login?{page}"
        target = f"http://127.0.0.1:{api.port}"
        report = attack(page, target, routes, other, tmp_path / "profile", start=login)
        assert (report["readable"], report["loaded"]) == ([], [])
        reached(api, routes)
        with_password = [request for request in api.requests if "authorization" in request.headers]
        assert {request.status for request in with_password} == {403}
        assert served.contents() == before


def test_a_page_of_an_allowed_origin_sends_changes(
    new_database: Callable[[], str], valkey_server: Any, broker_numbers: Iterator[int], tmp_path: Path
) -> None:
    """The counterpart of the attacks: the same page, if the operator allows its origin."""
    broker = valkey_server.url(next(broker_numbers))
    allowed = Site(0)
    try:
        origin = f"http://{EVIL}:{allowed.port}"
        with (
            serving("none", new_database, broker, tmp_path, allowed_origins=origin) as served,
            sites(served.port) as (api, _),
        ):
            before = served.contents()
            query = [route for route in served.routes() if route.is_query and route.method == "POST"]
            page = address(EVIL, allowed, allowed)
            attack(page, f"http://127.0.0.1:{api.port}", query, allowed, tmp_path / "profile")
            assert 200 in {request.status for request in api.requests}
            assert served.contents()["stack"] != before["stack"]
    finally:
        allowed.close()
