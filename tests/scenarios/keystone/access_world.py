"""The API over a scenario's database, and readers of its answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import parse_qs, urlencode, urlsplit, urlunsplit
from xml.etree import ElementTree

import pytest
from flask.testing import FlaskClient

from api.app import operations
from api.dependencies import Dependencies
from api.routes import assemble
from orchestrator.config import Settings
from tests.scenarios.signals.test_wait_conditions import drain
from tests.scenarios.world import World


def served(world: World, **settings) -> FlaskClient:
    """The API over the world's database; the world delivers its messages."""
    made_of = Dependencies(
        Settings(**{"auth": "none", **settings}),
        world.database,
        world.cipher,
        world.types,
        operations(),
        world.messages.extend,
    )
    return assemble(made_of).test_client()


@contextmanager
def serving(world: World, **settings) -> Iterator[FlaskClient]:
    """The same for a block, with the threads of the application."""
    client = served(world, **settings)
    yield client
    client.application.state.close()


@pytest.fixture
def api(world: World) -> FlaskClient:
    return served(world, auth="token")


def out(world, value, resources):
    """Create a stack; return the value of an output."""
    world.create("s", resources, outputs={"it": {"value": value}})
    drain(world)
    return world.outputs("s")["it"]


def code(answer):
    [result] = ElementTree.fromstring(answer.data).iter("Code")
    return answer.status_code, result.text


def tampered(url, **changes):
    parts = urlsplit(url)
    query = {name: values[0] for name, values in parse_qs(parts.query).items()} | changes
    return urlunsplit(parts._replace(query=urlencode({k: v for k, v in query.items() if v is not None})))
