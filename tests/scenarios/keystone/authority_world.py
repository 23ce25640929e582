"""A stack of ada, callers of all kinds, and a provider that notes as whom it is called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from orchestrator.clients.keystone.delegation import keystone_session
from orchestrator.errors import ProviderError, ProviderSilent
from orchestrator.operations.stacks.actions import roll_back
from orchestrator.resources.base import (
    Attribute,
    Context,
    Created,
    Observation,
    Signalled,
    Value,
)
from tests.plugins.stand_in_keystone import StandIn
from tests.scenarios.keystone.credential_world import sign_in
from tests.scenarios.observation.shelf import Box, Shelf
from tests.scenarios.observation.test_repairs import Healer
from tests.scenarios.world import World

ADA, BOB, ROOT = "u1", "id of bob", "id of root"
ROLES: Mapping[str, list[str]] = {
    "ada": ["member", "reader"],
    "bob": ["member", "reader"],
    "root": ["admin", "member", "reader"],
}


class Acts(Box):
    """A box that notes as whom each verb is called."""

    name = "Shelf::Acts"
    flight_seconds = 0.0
    stateful = True
    attributes: ClassVar = {"now": Attribute("string", "Text.", live=True)}
    called: list[tuple[str, str]] = []  # noqa: RUF012 - the test's: verb, user
    tokens: list[Mapping[str, Any]] = []  # noqa: RUF012 - of the calls, as Keystone shows them
    refused: set[str] = set()  # noqa: RUF012 - labels that the provider refuses
    lost: set[str] = set()  # noqa: RUF012 - labels whose requests have no answer

    def __init__(self, shelf: Shelf, keystone: StandIn) -> None:
        super().__init__(shelf)
        self.keystone = keystone

    @classmethod
    def clear(cls) -> None:
        cls.called.clear()
        cls.tokens.clear()

    def note(self, ctx: Context, verb: str) -> None:
        assert ctx.cloud is not None
        token = ctx.cloud.endpoint("identity", "RegionOne")
        assert token is not None
        shown = self.keystone.tokens[token.token]
        self.called.append((verb, shown["user"]["id"]))
        self.tokens.append(shown)

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        self.note(ctx, f"create {props.get('label')}")
        if props.get("label") in self.refused:
            raise ProviderError("refused")
        if props.get("label") in self.lost:
            raise ProviderSilent("no answer")
        return super().create(ctx, props)

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        if ctx.listed is None or physical_id not in ctx.listed:
            self.note(ctx, "observe")
        return super().observe(ctx, physical_id)

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        self.note(ctx, f"update {props.get('label')}")
        return super().update(ctx, physical_id, props, changed)

    def delete(self, ctx: Context, physical_id: str) -> None:
        self.note(ctx, "delete")
        super().delete(ctx, physical_id)

    def suspend(self, ctx: Context, physical_id: str) -> None:
        self.note(ctx, "suspend")

    def resume(self, ctx: Context, physical_id: str) -> None:
        self.note(ctx, "resume")

    def snapshot(self, ctx: Context, physical_id: str) -> Mapping[str, Value]:
        self.note(ctx, "snapshot")
        return {"id": "copy"}

    def signal(self, ctx: Context, physical_id: str, details: Value) -> Signalled:
        self.note(ctx, "signal")
        return Signalled()

    def read_attributes(self, ctx: Context, physical_id: str, names: frozenset[str]) -> Mapping[str, Value]:
        self.note(ctx, "read")
        return {"now": "text"}


def acts(label: str = "blue") -> dict[str, Any]:
    """Return a resource of the type."""
    return {"type": Acts.name, "properties": {"label": label}}


class Stage:
    """The stack `s` of ada at rest, and its callers."""

    def __init__(self, world: World, keystone: StandIn, shelf: Shelf) -> None:
        self.world, self.keystone, self.shelf = world, keystone, shelf
        self.healer = Healer(world, shelf)
        Acts.clear()
        Acts.refused.clear()
        Acts.lost.clear()

    @classmethod
    def make(cls, url: str, keystone: StandIn, **settings: Any) -> Stage:
        shelf = Shelf()
        types = {Acts.name: Acts(shelf, keystone)}
        return cls(World(url, types=types, **keystone.settings(**settings)), keystone, shelf)

    def call_as(self, user: str, **token: Any) -> None:
        """Go on as a user of the project."""
        options = {"roles": ROLES.get(user, ["member", "reader"]), **token}
        sign_in(self.world, self.keystone, user, **options)

    def lose(self, user_id: str = ADA) -> None:
        """Disable a user: the trusts of the user are not valid any more."""
        self.keystone.powerless.add(user_id)
        self.forget_sessions()

    def forget_sessions(self) -> None:
        """Go on with processes that have no token."""
        keystone_session.cache_clear()
        self.world.engine = self.world.new_engine()

    def deliver(self) -> None:
        self.world.deliver_all()

    def roll_back(self, number: int, name: str = "s") -> None:
        self.world.messages += roll_back(self.world.context, self.world.stack_row(name), number)

    def users(self, verb: str) -> set[str]:
        """Return the users as whom a verb was called, with any label."""
        return {user for called, user in Acts.called if called.split(" ")[0] == verb}

    def users_of(self, called: str) -> set[str]:
        """Return the users as whom a verb was called, with that label."""
        return {user for one, user in Acts.called if one == called}

    def author(self, name: str = "s") -> str:
        """Return the id of the author of the desired revision."""
        query = "SELECT v.author FROM stack s JOIN revision v ON v.id = s.revision_id WHERE s.name = :n"
        [row] = self.world.rows(query, n=name)
        return str(row.author["user_id"])

    def state(self, name: str = "s") -> str:
        row = self.world.stack_row(name)
        return f"{row.action}_{row.status}"
