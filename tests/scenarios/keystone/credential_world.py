"""Installations that request credentials from a stand-in for Keystone."""

# ruff: noqa: F811 - fixtures are imported
from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.errors import ProviderSilent
from orchestrator.operations.keystone.delegated_credentials import credential_reaper
from orchestrator.resources.base import Context, Created, Observation, ResourceType
from orchestrator.security.caller import Caller, Login
from tests.plugins.stand_in_keystone import StandIn, identity  # noqa: F401 - a fixture
from tests.scenarios.world import World

PROJECT = "p1"
NOTHING: dict[str, Any] = {"one": {"type": "OS::Heat::Value", "properties": {"value": 1}}}
CALLS = {"one": {"type": "Test::Calls"}}


class Calls(ResourceType):
    """Notes with which token it would call a service."""

    name = "Test::Calls"
    shown: list[str | None] = []  # noqa: RUF012 - the test's

    def create(self, ctx: Context, props: Any) -> Created:
        assert ctx.cloud is not None
        self.shown.append(ctx.cloud.session().get_token())
        return Created("made")

    def find(self, ctx: Context, token: str) -> str | None:
        return None

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        return Observation(exists=ctx.action != "DELETE")

    def delete(self, ctx: Context, physical_id: str) -> None:
        assert ctx.cloud is not None
        self.shown.append(ctx.cloud.session().get_token())


class Lost(ResourceType):
    """Its creates are not answered; their objects arrive late, or never."""

    name = "Test::Lost"
    flight_seconds = 0.0
    requested: str = ""  # the token of the last request
    objects: set[str] = set()  # noqa: RUF012 - the test's
    tokens: list[str] = []  # noqa: RUF012 - Keystone's, of the searches

    def create(self, ctx: Context, props: Any) -> Created:
        type(self).requested = ctx.token
        raise ProviderSilent("no answer")

    def find(self, ctx: Context, token: str) -> str | None:
        assert ctx.cloud is not None
        self.tokens.append(str(ctx.cloud.session().get_token()))
        return token if token in self.objects else None

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        assert ctx.cloud is not None
        ctx.cloud.session().get_token()
        return Observation(exists=physical_id in self.objects)

    def delete(self, ctx: Context, physical_id: str) -> None:
        assert ctx.cloud is not None
        ctx.cloud.session().get_token()
        self.objects.discard(physical_id)

    @classmethod
    def arrive(cls) -> None:
        """Carry out the last request."""
        cls.objects.add(cls.requested)


@pytest.fixture
def keystone(identity: StandIn) -> StandIn:
    """The stand-in, knowing of nothing."""
    identity.reset()
    return identity


@pytest.fixture
def installation(postgres_url: str, keystone: StandIn) -> Iterator[Callable[..., World]]:
    """Makes an installation that asks the stand-in, with ada as the caller."""
    made: list[World] = []

    def make(**settings: Any) -> World:
        world = World(
            postgres_url,
            types={"Test::Calls": Calls(), "Test::Lost": Lost()},
            **keystone.settings(**settings),
        )
        made.append(world)
        sign_in(world, keystone, "ada")
        return world

    yield make
    for world in made:
        world.close()


@pytest.fixture
def world(installation: Callable[..., World]) -> World:
    """An installation as shipped."""
    return installation()


def sign_in(world: World, keystone: StandIn, user: str, project: str = PROJECT, **options: Any) -> None:
    """Go on as a user of a project."""
    text = f"token of {user}"
    keystone.knows(text, project=project, user=user, **options)
    reported = keystone.tokens[text]
    names = tuple(role["name"] for role in reported["roles"])
    login = Login(text, project, names, names)
    world.caller = Caller(PROJECT, user, names, user_id=reported["user"]["id"], login=login)
    world.context = replace(world.context, caller=world.caller)


def tidy(world: World) -> int:
    """Run the credential reaper until nothing is due."""
    return credential_reaper(world.database, world.cipher, world.settings).run()


def later(world: World) -> None:
    """Make the scheduled removals due now."""
    with world.database.borrow() as db:
        db.execute("UPDATE credential SET due_at = now() WHERE due_at IS NOT NULL")


def states(world: World) -> list[str]:
    return [row.state for row in world.rows("SELECT state FROM credential ORDER BY id")]
