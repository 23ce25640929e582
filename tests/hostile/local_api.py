"""An API behind gunicorn, as deployed, with a finished stack; and the contents of its database."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from werkzeug.security import generate_password_hash

from orchestrator.security.encryption import new_key
from orchestrator.security.tokens import create_token
from tests.hostile.routes import PROJECT, Route, routes
from tests.integration.api_world import World
from tests.integration.served_api import answer, served, status

PASSWORD = "correct horse"


@dataclass(frozen=True)
class Served:
    """The API under attack."""

    mode: str
    port: int
    database_url: str
    places: dict[str, str]
    credentials: dict[str, str]  # headers of an authenticated caller

    def routes(self) -> list[Route]:
        return list(routes(self.places))

    def send(self, route: Route, headers: dict[str, str]) -> bytes:
        """Send a request as a client with credentials; return the response."""
        sent = {"Host": f"localhost:{self.port}", **self.credentials, **headers}
        if route.body:
            sent = {"Content-Type": route.kind or "application/json", **sent}
            sent["Content-Length"] = str(len(route.body))
        lines = [f"{name}: {value}" for name, value in sent.items() if value]
        head = f"{route.method} {route.path} HTTP/1.1\r\nConnection: close\r\n" + "\r\n".join(lines)
        return answer(self.port, head.encode() + b"\r\n\r\n" + route.body)

    def status(self, route: Route, headers: dict[str, str]) -> int:
        return status(self.send(route, headers))

    def contents(self) -> dict[str, str]:
        """Return a digest of every table."""
        with psycopg.connect(self.database_url) as db:
            tables = db.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
            digest = "SELECT coalesce(md5(string_agg(t::text, '|' ORDER BY t::text)), '') FROM {} t"
            return {name: db.execute(digest.format(name)).fetchone()[0] for (name,) in tables}  # type: ignore[arg-type, index]


@contextmanager
def serving(
    mode: str, new_database: Callable[[], str], broker_url: str, folder: Path, **settings: str
) -> Iterator[Served]:
    """Serve an API with a finished stack in an authentication mode."""
    url = new_database()
    world = World(url)
    stack = world.stack(PROJECT, "victim")
    world.resource(stack, "one")
    token = create_token(world.database, PROJECT, "tests")
    world.database.engine.dispose()
    users = folder / "users.yaml"
    users.write_text(
        f"users: {{ada: {{password: '{generate_password_hash(PASSWORD)}', project: {PROJECT}}}}}\n"
    )
    login = base64.b64encode(f"ada:{PASSWORD}".encode()).decode()
    credentials = {"token": {"X-Auth-Token": token}, "basic": {"Authorization": f"Basic {login}"}}
    chosen: dict[str, Any] = {
        "auth": mode,
        "users_file": str(users),
        "database_url": url,
        "broker_url": broker_url,
        "encryption_keys": new_key(),
        **settings,
    }
    identity = f"{stack.name}/{stack.uuid}"
    places = {
        "project_id": PROJECT,
        "stack_name": stack.name,
        "stack_id": str(stack.uuid),
        "resource_name": "one",
        "rest": f"{PROJECT}:stacks/{identity}/resources/one",
        "type_name": "OS::Heat::None",
        "version": "heat_template_version.2021-04-16",
        "key": "it",
    }
    with served(chosen, folder / "api.log", threads=8) as port:
        yield Served(mode, port, url, places, credentials.get(mode, {}))


@pytest.fixture(scope="module", params=["none", "basic", "token"])
def api(
    request: pytest.FixtureRequest,
    new_database: Callable[[], str],
    valkey_server: Any,
    broker_numbers: Iterator[int],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Served]:
    """An API in each mode."""
    folder = tmp_path_factory.mktemp("api")
    with serving(request.param, new_database, valkey_server.url(next(broker_numbers)), folder) as made:
        yield made


@pytest.fixture(scope="module")
def open_api(
    new_database: Callable[[], str],
    valkey_server: Any,
    broker_numbers: Iterator[int],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Served]:
    """An API without authentication."""
    folder = tmp_path_factory.mktemp("api")
    with serving("none", new_database, valkey_server.url(next(broker_numbers)), folder) as made:
        yield made
