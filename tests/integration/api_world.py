"""A world for the tests of the API: rows inserted into PostgreSQL, below the real application.

Tests share a database and are isolated by project, as callers are.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, ClassVar
from urllib.parse import quote

import orjson
import pytest
from flask.testing import FlaskClient
from sqlalchemy import func, insert, update
from sqlalchemy.dialects.postgresql import insert as pg_insert
from sqlalchemy.orm import DeclarativeBase

from api.dependencies import Application, Dependencies, Operations
from api.routes import assemble
from orchestrator.config import Settings
from orchestrator.errors import ProviderBusy
from orchestrator.resources.base import Attribute, Context, Property, ResourceType, Value
from orchestrator.resources.registry import Registry
from orchestrator.security.encryption import Cipher, new_key
from orchestrator.store.connections.database import Database
from orchestrator.store.tables.events import Event
from orchestrator.store.tables.graph import Resource, ResourceDefinition
from orchestrator.store.tables.stacks import Content, Revision, Stack
from tests import constants
from tests.integration.fake_operations import Neighbour

START = dt.datetime(2026, 1, 1, 12, 0, 0, 654_321, tzinfo=dt.UTC)
TEMPLATE = {
    "heat_template_version": "2021-04-16",
    "description": "Two of them",
    "parameters": {
        "size": {"type": "number", "default": 3},
        "names": {"type": "comma_delimited_list", "default": "a,b"},
        "password": {"type": "string", "hidden": True},
    },
    "resources": {"one": {"type": "Test::Plain"}, "two": {"type": "Test::Plain", "depends_on": "one"}},
    "outputs": {"it": {"description": "That one", "value": 1}, "broken": {"value": 2}},
}
OUTLINE = {
    "version": TEMPLATE["heat_template_version"],
    "parameter_groups": [],
    **{key: TEMPLATE[key] for key in ("description", "parameters", "outputs")},
}


class Plain(ResourceType):
    """A thing with an open and a secret attribute."""

    name = "Test::Plain"
    calls_out = False
    attributes = {"open": Attribute("Anybody may know."), "shut": Attribute("Nobody may know.", secret=True)}  # noqa: RUF012


class Watched(ResourceType):
    """A thing with live attributes."""

    name = "Test::Watched"
    properties = {"label": Property(type="string", doc="A label.")}  # noqa: RUF012
    hidden = True  # not listed
    calls_out = False
    live_show = True
    attributes: ClassVar = {
        "now": Attribute("The present.", live=True),
        "pin": Attribute("A code.", secret=True, live=True),
    }

    def read_attributes(self, ctx: Context, physical_id: str, names: frozenset[str]) -> Mapping[str, Value]:
        if physical_id == "away":
            raise ProviderBusy("too many requests")
        values = {"now": physical_id, "pin": "1234", "show": {"id": physical_id}}
        return {name: values[name] for name in names}


class World:
    """A database with the rows of the tests, and applications over it."""

    def __init__(self, url: str) -> None:
        self.database = Database(url, "test-api")
        self.cipher = Cipher([new_key()])
        self.neighbour = Neighbour()
        self._numbers = count(1)
        self._applications: list[Application] = []

    def close(self) -> None:
        """End the threads of the applications, then the connections."""
        for application in self._applications:
            application.state.close()
        self.database.engine.dispose()

    def project(self) -> str:
        """Return a project that nothing else uses."""
        return f"project {next(self._numbers)}"

    def client(self, *, base: str = "/v1", local: bool = False, **settings: Any) -> Client:
        """Return a client of an application with these settings."""
        constants.replace_for_test(settings)
        operations = Operations(
            self.neighbour.create,
            self.neighbour.delete,
            self.neighbour.update,
            self.neighbour.act,
            self.neighbour.signal,
            self.neighbour.signal_by_url,
            self.neighbour.mark_unhealthy,
            self.neighbour.waiting,
            self.neighbour.validate,
            self.neighbour.outputs,
            self.neighbour.roll_back,
            self.neighbour.differ,
            self.neighbour.preview_create,
            self.neighbour.preview_update,
        )
        made_of = Dependencies(
            Settings(**{"auth": "none", **settings}),
            self.database,
            self.cipher,
            Registry.of(Plain, Watched),
            operations,
            self.neighbour.publish,
            local=local,
        )
        self._applications.append(assemble(made_of))
        return Client(self._applications[-1].test_client(), base)

    def insert(self, table: type[DeclarativeBase], *rows: Mapping[str, Any]) -> None:
        """Put rows into a table."""
        with self.database.engine.begin() as connection:
            connection.execute(insert(table), list(rows))

    def content(self, body: bytes) -> bytes:
        """Store bytes; return their hash."""
        digest = hashlib.sha256(body).digest()
        with self.database.engine.begin() as connection:
            connection.execute(pg_insert(Content).values(hash=digest, body=body).on_conflict_do_nothing())
        return digest

    def stack(
        self,
        project: str,
        name: str,
        *,
        age: int = 0,
        revision: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Made:
        """Put a stack there, as old as `-age` seconds after START, with a revision of TEMPLATE."""
        values = {
            "uuid": uuid.uuid4(),
            "project_id": project,
            "name": name,
            "action": "CREATE",
            "status": "COMPLETE",
            "status_reason": "Stack CREATE completed successfully",
            "created_at": START + dt.timedelta(seconds=age),
            "username": "somebody",
            **options,
        }
        digest = self.content(orjson.dumps(TEMPLATE))
        with self.database.engine.begin() as connection:
            stack_id = connection.execute(
                func.nextval(func.pg_get_serial_sequence("stack", "id")).select()
            ).scalar_one()
            connection.execute(insert(Stack).values(id=stack_id, **{"root_id": stack_id, **values}))
            revision_id = connection.execute(
                insert(Revision)
                .values(
                    **{
                        "stack_id": stack_id,
                        "number": 1,
                        "action": "CREATE",
                        "template_hash": digest,
                        "outline": OUTLINE,
                        "parameters": {"size": 3, "names": ["a", "b"], "password": None},
                        **(revision or {}),
                    }
                )
                .returning(Revision.id)
            ).scalar_one()
            connection.execute(update(Stack).where(Stack.id == stack_id).values(revision_id=revision_id))
        return Made(stack_id, values["uuid"], project, name)

    def resource(self, stack: Made, name: str, requires: Sequence[str] = (), **options: Any) -> int:
        """Put a resource with its definition there; return its id."""
        definition = {
            "stack_id": stack.id,
            "name": name,
            "digest": b"d",
            "body": {"type": "Test::Plain", "description": f"The {name}"},
            "requires": list(requires),
            "valid_from": 1,
        }
        with self.database.engine.begin() as connection:
            connection.execute(pg_insert(ResourceDefinition).values(definition).on_conflict_do_nothing())
            values = {
                "uuid": uuid.uuid4(),
                "stack_id": stack.id,
                "name": name,
                "type": "Test::Plain",
                "created_at": START,
            }
            return connection.execute(
                insert(Resource).values({**values, **options}).returning(Resource.id)
            ).scalar_one()

    def event(self, stack: Made, name: str, **options: Any) -> int:
        """Put an event there; return its id."""
        values = {
            "stack_id": stack.id,
            "resource_name": name,
            "resource_type": "Test::Plain",
            "physical_id": f"physical-{name}",
            "action": "CREATE",
            "status": "COMPLETE",
            "reason": "state changed",
            "created_at": START,
        }
        with self.database.engine.begin() as connection:
            return connection.execute(
                insert(Event).values({**values, **options}).returning(Event.id)
            ).scalar_one()


@dataclass(frozen=True)
class Made:
    """A stack that a test put there."""

    id: int
    uuid: uuid.UUID
    project: str
    name: str

    @property
    def path(self) -> str:
        """Its canonical path, without the version."""
        return f"/{self.project.replace(' ', '%20')}/stacks/{self.name}/{self.uuid}"


class Client:
    """HTTP as tests want it: paths without the version, JSON out."""

    def __init__(self, client: FlaskClient, base: str) -> None:
        self.http, self.base = client, base

    def ask(self, method: str, path: str, status: int, **options: Any) -> Any:
        """Send a request, expect the status, return the JSON of the answer, None if it is empty."""
        response = self.http.open(self.base + path, method=method, **options)
        assert response.status_code == status, (
            method,
            path,
            response.status,
            response.get_data(as_text=True),
        )
        return response.get_json() if response.data else None

    def get(self, path: str, status: int = 200, **options: Any) -> Any:
        return self.ask("GET", path, status, **options)

    def names(self, path: str, key: str = "stacks", name: str = "stack_name") -> list[str]:
        """Return the names a listing gives."""
        return [item[name] for item in self.get(path)[key]]

    def message(self, method: str, path: str, status: int, **options: Any) -> str:
        """Return `error.message` of a refusal, its shape looked at."""
        body = self.ask(method, path, status, **options)
        assert body["code"] == status
        assert set(body) == {"code", "title", "explanation", "error"}
        assert body["error"]["traceback"] is None
        message: str = body["error"]["message"]
        return message


@pytest.fixture(scope="module")
def world(new_database: Callable[[], str]) -> Iterator[World]:
    """A database for the tests of a module."""
    made = World(new_database())
    yield made
    made.close()


@pytest.fixture
def project(world: World) -> str:
    """A project that nothing else uses."""
    return world.project()


@pytest.fixture
def api(world: World) -> Client:
    """A client of an application with the settings as shipped."""
    return world.client()


def root(project: str) -> str:
    """Return a project's path, without the version."""
    return f"/{quote(project)}"
