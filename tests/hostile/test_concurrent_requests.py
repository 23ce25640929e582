"""Limits on concurrent requests: for a caller and a project, until the response is closed."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any

import pytest

from api.middleware import in_flight
from api.middleware.in_flight import InFlight
from orchestrator.config import Settings
from orchestrator.rate_errors import TooManyConcurrentRequests
from orchestrator.security.caller import Caller
from tests import constants

ALICE, BOB, ADMIN = Caller("p", "alice"), Caller("p", "bob"), Caller("admins", "root", is_admin=True)


class Api:
    """The middleware around an application that identifies its caller."""

    def __init__(self, **settings: Any) -> None:
        constants.replace_for_test(settings)
        self.wrapped = InFlight(self._answer, Settings(**settings))

    def send(self, caller: Caller, project: str = "p", **environ: Any) -> Any:
        """Return the response, which counts until it is closed."""
        environ = {
            "caller": caller,
            "project": project,
            "REMOTE_ADDR": "192.0.2.1",
            "PATH_INFO": "/v1/p/stacks",
            **environ,
        }
        return self.wrapped(environ, None)  # type: ignore[arg-type]

    @staticmethod
    def _answer(environ: dict[str, Any], _: object) -> Iterable[bytes]:
        if environ.get("early"):  # before its authentication
            raise RuntimeError
        with ExitStack() as reading:
            if environ.get("anonymous_body"):
                reading.enter_context(in_flight.reading_body(environ))
            may_wait = environ.get("may_wait", False)
            in_flight.identify(environ, environ["caller"], environ["project"], may_wait=may_wait)
            if environ.get("fails"):
                raise RuntimeError
            if environ.get("stream"):
                in_flight.exempt(environ)
            return [b""]


def test_a_project_and_a_caller_have_a_maximum_of_concurrent_requests() -> None:
    api = Api(max_concurrent_requests=2)
    first, _ = api.send(ALICE), api.send(BOB)
    with pytest.raises(TooManyConcurrentRequests, match="The project may have 2 concurrent requests"):
        api.send(ALICE)
    api.send(Caller("q", "alice"), "q").close()  # another project
    first.close()
    api.send(ALICE).close()
    others = [api.send(ADMIN, "r"), api.send(ADMIN, "s")]
    with pytest.raises(TooManyConcurrentRequests, match="The caller may have 2 concurrent requests"):
        api.send(ADMIN, "t")
    for response in others:
        response.close()
    api.send(ADMIN, "t").close()


def test_failed_requests_and_event_streams_do_not_count() -> None:
    api = Api(max_concurrent_requests=1)
    for _ in range(3):
        with pytest.raises(RuntimeError):
            api.send(ALICE, fails=True)
    streams = [api.send(ALICE, stream=True) for _ in range(3)]
    api.send(ALICE).close()
    assert len(streams) == 3


def test_slow_bodies_of_strangers_count_for_their_address() -> None:
    api = Api(max_slow_bodies=4)
    late = {"CONTENT_LENGTH": "9", in_flight.SOCKET: SimpleNamespace(complete=False)}
    with api.wrapped.slow_body((("address", "192.0.2.1"),)):
        with pytest.raises(TooManyConcurrentRequests, match="The client address may have 1 concurrent"):
            api.send(ALICE, anonymous_body=True, **late)
        api.send(ALICE, anonymous_body=True, **{**late, "REMOTE_ADDR": "192.0.2.2"}).close()
        complete = {**late, in_flight.SOCKET: SimpleNamespace(complete=True)}
        api.send(ALICE, anonymous_body=True, **complete).close()
    api.send(ALICE, anonymous_body=True, **late).close()


def test_all_slow_bodies_have_a_maximum() -> None:
    api = Api(max_slow_bodies=4)
    with ExitStack() as held:
        for number in range(4):
            held.enter_context(api.wrapped.slow_body((("address", str(number)),)))
        with pytest.raises(
            TooManyConcurrentRequests, match="This server may have 4 concurrent request bodies"
        ):
            held.enter_context(api.wrapped.slow_body((("address", "4"),)))
