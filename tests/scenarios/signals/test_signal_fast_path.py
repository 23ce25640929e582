"""A signal on the fast path has exactly the effects of the normal path
(api/middleware/signal_fast_path.py).
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from api import routes
from api.app import operations
from api.dependencies import Dependencies
from api.layers import WSGI_LAYERS
from api.middleware import access_log, audit, signal_fast_path
from api.routes import assemble
from orchestrator.config import Settings
from orchestrator.security.tokens import create_token
from tests import constants
from tests.scenarios.signals.test_wait_conditions import AWS_HANDLE, drain
from tests.scenarios.world import World

TOKEN_HANDLE = {"type": "OS::Heat::WaitConditionHandle"}
BELL = {"type": "OS::Heat::WaitConditionHandle", "properties": {"signal_transport": "NO_SIGNAL"}}
RANDOM = {"type": "OS::Heat::RandomString"}


class Lines:
    """A log that keeps its lines."""

    def __init__(self) -> None:
        self.kept: list[tuple[str, dict[str, Any]]] = []

    def info(self, event: str, **options: Any) -> None:
        options.pop("seconds", None)
        self.kept.append((event, options))

    debug = info


class Api:
    """Both paths to a single database; `short` counts the requests that took the fast path."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch, **settings: Any) -> None:
        self.lines = Lines()
        monkeypatch.setattr(audit, "log", self.lines)
        monkeypatch.setattr(access_log, "log", self.lines)
        self.world, self.long = world, 0
        constants.replace_for_test(settings)
        chosen = Settings(**{"auth": "token", **settings})
        pieces = (world.database, world.cipher, world.types, operations(), world.messages.extend)
        init = signal_fast_path.SignalFastPath.__init__

        def counting(way: Any, app: Any, inner: Any) -> None:
            def counted(environ: Any, start: Any) -> Any:
                self.long += 1
                return inner(environ, start)

            init(way, app, counted)

        monkeypatch.setattr(signal_fast_path.SignalFastPath, "__init__", counting)
        self.ways = {"short": assemble(Dependencies(chosen, *pieces)).test_client()}
        long = tuple(layer for layer in WSGI_LAYERS if layer.name != "signal_fast_path")
        with monkeypatch.context() as patch:
            patch.setattr(routes, "WSGI_LAYERS", long)
            self.ways["long"] = assemble(Dependencies(chosen, *pieces)).test_client()

    def ask(self, way: str, method: str, url: str, **request: Any) -> tuple[Any, ...]:
        """Return all that comes of a request: the answer, the lines, how many signals; and take it back."""
        self.lines.kept.clear()
        self.world.messages.clear()
        long = self.long
        answer = self.ways[way].open(url, method=method, **request)
        headers = {name: value for name, value in answer.headers.items() if name != "x-openstack-request-id"}
        assert answer.headers["x-openstack-request-id"].startswith("req-")
        said = answer.get_data()
        answer.close()
        if answer.status_code >= 400:
            said = b""  # it has the id of its request
        signals = [
            (row.resource_id, self.world.cipher.open(row.details))
            for row in self.world.rows("SELECT resource_id, details FROM signal ORDER BY id")
        ]
        rings = list(self.world.messages)
        with self.world.database.connect() as db:
            db.execute("DELETE FROM signal")
        assert answer.status_code != 500
        self.went = "short" if self.long == long else "long"
        lines = list(self.lines.kept)
        return answer.status_code, said, headers, lines, signals, rings


@pytest.fixture
def api(world: World, monkeypatch: pytest.MonkeyPatch) -> Api:
    return Api(world, monkeypatch)


def made(world: World) -> dict[str, Any]:
    """Make a stack; return how its resources are signalled."""
    resources = {"aws": AWS_HANDLE, "t": TOKEN_HANDLE, "none": BELL, "random": RANDOM}
    values = {"url": {"get_resource": "aws"}} | {
        name: {"get_attr": ["t", name]} for name in ("token", "endpoint")
    }
    world.create("s", resources, outputs={name: {"value": value} for name, value in values.items()})
    drain(world)
    reported = world.outputs("s")
    place = urlsplit(reported["endpoint"]).path
    headers = {"Content-Type": "application/json"}
    mine = headers | {"X-Auth-Token": create_token(world.database, "p1", "ada")}
    return {
        "url": reported["url"],
        "place": place,
        "none": place.replace("/resources/t/", "/resources/none/"),
        "random": place.replace("/resources/t/", "/resources/random/"),
        "given": headers | {"X-Auth-Token": reported["token"]},
        "mine": mine,
    }


SAID = json.dumps({"Status": "SUCCESS", "Reason": "r", "Data": "d", "UniqueId": "u"})


def test_a_valid_signal_takes_the_fast_path_with_the_same_answer(world: World, api: Api) -> None:
    to = made(world)
    for method, url, request in (
        ("PUT", to["url"], {"data": SAID}),
        ("PUT", to["url"], {"data": SAID, "headers": {"Content-Type": "application/x-www-form-urlencoded"}}),
        ("POST", to["place"], {"data": '{"id": "1"}', "headers": to["given"]}),
        ("POST", to["place"].replace("/v1/", "/v1.0/"), {"data": '{"id": "1"}', "headers": to["given"]}),
        ("POST", to["none"], {"data": '{"data": "ü"}', "headers": to["mine"]}),
        ("POST", to["none"], {"data": "words", "headers": to["mine"]}),
        ("POST", to["place"], {"data": b"{}", "headers": to["mine"]}),
    ):
        long, short = (api.ask(way, method, url, **request) for way in ("long", "short"))
        assert api.went == "short", url
        assert short == long, url
        assert short[0] == 200
        assert [event for event, _ in short[3]] == ["audit", "request"]
        assert len(short[4]) == len(short[5]) == 1


def test_all_other_requests_take_the_normal_path_unchanged(world: World, api: Api) -> None:
    to = made(world)
    strangers = to["mine"] | {"X-Auth-Token": create_token(world.database, "p2", "eve")}
    reader = to["mine"] | {"X-Auth-Token": create_token(world.database, "p1", "rob", roles=["nobody"])}
    for status, method, url, request in (
        (403, "PUT", to["url"].replace("Signature=", "Signature=x"), {"data": SAID}),
        (400, "PUT", to["url"], {"data": "{}"}),  # no details of this type
        (400, "PUT", to["url"], {"data": "{"}),
        (405, "POST", to["url"], {"data": SAID}),
        (403, "PUT", to["url"].replace("/resources/aws", "/resources/t"), {"data": SAID}),
        (401, "POST", to["place"], {"data": "{}", "headers": {"X-Auth-Token": "signal.x"}}),
        (401, "POST", to["place"], {"data": "{}"}),
        (403, "POST", to["place"], {"data": "{}", "headers": strangers}),
        (403, "POST", to["place"], {"data": "{}", "headers": reader}),
        (403, "POST", to["none"], {"data": "{}", "headers": to["given"]}),
        (404, "POST", to["place"].replace("/resources/t/", "/resources/q/"), {"headers": to["mine"]}),
        (404, "POST", to["place"].replace("/stacks/s/", "/stacks/q/"), {"headers": to["given"]}),
        (400, "POST", to["random"], {"data": "{}", "headers": to["mine"]}),
        (400, "POST", to["place"], {"data": "{", "headers": to["mine"]}),
        (400, "POST", to["place"], {"data": '{"unset_hook": "pre-update"}', "headers": to["mine"]}),
        (400, "POST", to["place"], {"data": b'{"x": "\\u0000"}', "headers": to["mine"]}),
        (200, "POST", to["place"], {"headers": to["given"] | {"X-Openstack-Request-Id": "req-1"}}),
        (200, "POST", f"{to['place']}?x=1", {"data": "{}", "headers": to["given"]}),
        (200, "POST", to["place"], {"data": "{}", "headers": to["given"] | {"Content-Type": "x/y"}}),
    ):
        request.setdefault("headers", {})
        long, short = (api.ask(way, method, url, **request) for way in ("long", "short"))
        assert api.went == "long", url
        assert (short[0], short[1:]) == (status, long[1:]), url


def test_a_signal_to_a_suspended_resource_is_refused_with_a_single_event(world: World, api: Api) -> None:
    to = made(world)
    world.act("s", "suspend")
    drain(world)
    answer = api.ask("short", "POST", to["none"], data="{}", headers=to["mine"])
    assert answer[0] == 400
    uuid = str(world.stack_row("s").uuid)
    assert len([item for item in world.event_reasons(uuid, "none") if "Cannot signal" in item]) == 1
    assert api.ask("short", "POST", to["place"], data="{}", headers=to["given"])[0] == 401
    assert api.ask("short", "PUT", to["url"], data=SAID)[0] == 403


def test_a_token_opens_nothing_when_its_stack_is_gone(world: World, api: Api) -> None:
    to = made(world)
    assert api.ask("short", "POST", to["place"], data="{}", headers=to["given"])[0] == 200
    assert api.ask("short", "POST", to["place"], data="{}", headers=to["mine"])[0] == 200
    assert api.ask("short", "PUT", to["url"], data=SAID)[0] == 200
    world.delete("s")
    drain(world)
    assert api.ask("short", "POST", to["place"], data="{}", headers=to["given"])[0] == 401
    assert api.ask("short", "POST", to["place"], data="{}", headers=to["mine"])[0] == 404
    assert api.ask("short", "PUT", to["url"], data=SAID)[0] == 403


def test_both_paths_count_signals_once_for_the_same_rate(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = Api(world, monkeypatch, quotas={"signals_per_second": 0.01}, request_burst_seconds=400.0)
    to = made(world)
    fast = api.ask("short", "POST", to["place"], data="{}", headers=to["mine"])
    assert (fast[0], api.went) == (200, "short")
    assert api.ask("short", "PUT", to["url"], data=SAID)[0] == 200
    slow = {**to["mine"], "Origin": "http://localhost"}  # not eligible for the fast path
    assert api.ask("short", "POST", to["place"], data="{}", headers=slow)[0] == 200
    assert api.went == "long"
    short = {"CONTENT_LENGTH": "100"}  # both paths see this request
    broken = api.ask("short", "POST", to["place"], data="{}", headers=to["mine"], environ_overrides=short)
    assert (broken[0], api.went) == (400, "long")
    assert api.ask("short", "POST", to["place"], data="{}", headers=to["mine"])[0] == 429
    assert api.ask("short", "PUT", to["url"], data=SAID)[0] == 400  # Amazon's code: Throttling


def test_requests_do_not_count_as_signals(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    api = Api(world, monkeypatch, quotas={"requests_per_second": 0.01}, request_burst_seconds=1.0)
    to = made(world)
    listed = [api.ways["short"].get("/v1/p1/stacks", headers=to["mine"]).status_code for _ in range(2)]
    assert listed == [200, 429]
    assert api.ask("short", "POST", to["place"], data="{}", headers=to["mine"])[0] == 200


def test_the_fast_path_works_without_authentication(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    api = Api(world, monkeypatch, auth="none")
    to = made(world)
    long, short = (
        api.ask(way, "POST", to["none"], data="{}", headers={"Content-Type": "application/json"})
        for way in ("long", "short")
    )
    assert api.went == "short"
    assert short == long


def test_a_signal_whose_writing_is_not_answered_is_not_written_again(world: World, api: Api) -> None:
    """The connection ends after the writing statement: the caller gets an error, and may repeat
    the request.
    """
    to = made(world)

    def disconnect() -> None:
        raise psycopg.OperationalError("server closed the connection unexpectedly")

    world.after("accept_signals", disconnect)
    came = api.ask("short", "POST", to["place"], data="{}", headers=to["given"])
    assert (came[0], len(came[4])) == (503, 1)


def test_a_body_that_ends_too_early_is_refused(world: World, api: Api) -> None:
    to = made(world)
    environ = {"CONTENT_LENGTH": "100"}
    long, short = (
        api.ask(way, "POST", to["place"], data="{}", headers=to["given"], environ_overrides=environ)
        for way in ("long", "short")
    )
    assert (short[0], short[4]) == (long[0], long[4]) == (400, [])
