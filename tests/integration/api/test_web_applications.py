"""Web applications beside the API: mounted if they are installed, and not needed."""

# ruff: noqa: F811 - fixtures are imported
from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pytest
from werkzeug.exceptions import Forbidden, NotFound, Unauthorized
from werkzeug.test import EnvironBuilder

from api import web_applications
from api.web_applications import WebHost
from orchestrator.security.tokens import create_token
from tests.integration.api_world import World, project, world  # noqa: F401 - fixtures


@dataclass(frozen=True, slots=True)
class Point:
    """An entry point."""

    name: str
    load: Callable[[], Any]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that makes the given entry points the only installed ones."""
    return lambda *points: monkeypatch.setattr(web_applications, "entry_points", lambda group: points)


def test_the_api_works_without_the_console(install: Any, world: World, project: str) -> None:
    install()
    api = world.client()
    assert api.http.get("/ui").status_code == 404
    assert api.get(f"/{project}/stacks")["stacks"] == []


def test_an_application_gets_the_requests_below_its_place(install: Any, world: World, project: str) -> None:
    def create(host: WebHost) -> Any:
        def application(environ: Any, start_response: Any) -> Iterable[bytes]:
            call = {**environ, "PATH_INFO": f"/v1/{project}/stacks"}
            chunks, status, _ = host.call(call, may_wait=True)
            start_response("200 OK", [("Content-Type", "text/plain")])
            text = f"{environ['SCRIPT_NAME']} {environ['PATH_INFO']} {status} "
            return [text.encode(), *chunks]

        return application

    install(Point("board", lambda: create))
    api = world.client()
    assert api.http.get("/board/a").text.startswith('/board /a 200 {"stacks":')
    assert api.http.get("/boards").status_code == 404
    assert api.http.get("/ui").status_code == 404


def test_a_host_answers_with_errors_of_http(world: World, project: str) -> None:
    app = world.client(auth="token").http.application
    host, environ = WebHost(app.state, app.wsgi_app), EnvironBuilder().get_environ()
    token = create_token(world.database, project, "a", roles=["reader"])
    who = host.enter(host.identify(environ, {"HTTP_X_AUTH_TOKEN": token}), project)
    assert host.may(who, "stacks:index")
    with pytest.raises(Forbidden, match="not authorized to use stacks:create"):
        host.require(who, "stacks:create")
    with pytest.raises(NotFound, match="could not be found"):
        host.enter(who, "another")
    with pytest.raises(Unauthorized):
        host.identify(environ, {"HTTP_X_AUTH_TOKEN": "orc_wrong"})
    assert host.open_sealed("nonsense") is None
