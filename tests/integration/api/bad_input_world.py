"""A project with stacks in every state in which the API refuses requests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import SecretStr
from sqlalchemy import text

from api.app import create_app
from orchestrator.config import Settings
from orchestrator.security.encryption import new_key
from tests.integration.api_world import Client, World

HOT = "2021-04-16"
PLAIN = {"heat_template_version": HOT, "resources": {"a": {"type": "OS::Heat::None"}}}
IMMUTABLE = {
    "heat_template_version": HOT,
    "parameters": {"p": {"type": "string", "default": "x", "immutable": True}},
}
TABLES = ("stack", "revision", "resource", "graph_node", "event", "snapshot", "software_config", "content")


def made(**options: Any) -> dict[str, Any]:
    """Return the body of a valid create, with the given changes."""
    return {"stack_name": "s", "template": PLAIN, **options}


@dataclass
class Served:
    """The application under Heat's limits, and the world beneath it."""

    api: Client
    world: World
    places: dict[str, str]

    def rows(self) -> list[int]:
        counts = ", ".join(f"(SELECT count(*) FROM {table})" for table in TABLES)
        with self.world.database.engine.connect() as connection:
            return list(connection.execute(text(f"SELECT {counts}")).one())


@pytest.fixture(scope="module")
def served(
    new_database: Callable[[], str], valkey_server: Any, broker_numbers: Iterator[int]
) -> Iterator[Served]:
    """A project with stacks in every state that refuses something."""
    world = World(new_database())
    settings = Settings(
        auth="none",
        broker_url=SecretStr(valkey_server.url(next(broker_numbers))),
        encryption_keys=SecretStr(new_key()),
        limits="heat",
    )
    client = Client(create_app(settings, world.database).test_client(), "/v1")
    states = {
        "complete": ("CREATE", "COMPLETE"),
        "busy": ("UPDATE", "IN_PROGRESS"),
        "suspended": ("SUSPEND", "COMPLETE"),
    }
    places = {}
    for name, (action, status) in states.items():
        stack = world.stack("p", name, action=action, status=status)
        world.resource(stack, "one", action=action, status=status, type="OS::Heat::None")
        places[name] = stack.path
    places["misnamed"] = places["complete"].replace("complete", "misnamed")
    for name, template in (("fixed", IMMUTABLE), ("live", PLAIN)):
        place = client.ask("POST", "/p/stacks", 201, json={"stack_name": name, "template": template})
        places[name] = place["stack"]["links"][0]["href"].removeprefix("http://localhost/v1")
    with world.database.engine.begin() as connection:  # a project that is full
        connection.execute(
            text(
                "INSERT INTO stack"
                " (id, uuid, project_id, name, root_id, action, status, status_reason, created_at)"
                " SELECT id, gen_random_uuid(), 'full', 's' || n, id, 'CREATE', 'COMPLETE', '', now()"
                " FROM (SELECT n, nextval(pg_get_serial_sequence('stack', 'id')) AS id"
                "       FROM generate_series(1, 512) n) made"
            )
        )
    yield Served(client, world, places)
    world.database.engine.dispose()
