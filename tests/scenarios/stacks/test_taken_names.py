"""A name that is taken is refused before the template is looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import orjson
import pytest

from orchestrator.errors import LimitExceeded, StackExists
from orchestrator.operations.context import Body, OperationContext
from orchestrator.operations.preview.create import preview_create
from orchestrator.operations.quotas.room import counts_of
from orchestrator.operations.stacks.create_delete import create
from orchestrator.resources.base import ResourceType
from orchestrator.store.access.idempotency import ClientToken, TokenTaken
from orchestrator.store.traversals.traversals import RevisionChanged
from tests.scenarios.world import World, test_resource


class LookedUp(ResourceType):
    """A type whose validation asks a service."""

    name = "Test::LookedUp"
    calls_out = False

    def __init__(self) -> None:
        self.look_ups = 0

    def validate(self, properties: Mapping[str, Any], stack_timeout_seconds: float) -> list[Any]:
        self.look_ups += 1
        return []


FAULTY = {"heat_template_version": "2021-04-16", "resources": {"a": {"type": "No::Such"}}}
ASKING = {"heat_template_version": "2021-04-16", "resources": {"a": {"type": "Test::LookedUp"}}}
READERS: list[Callable[[OperationContext, Body], object]] = [create, preview_create]


@pytest.fixture
def world(postgres_url: str) -> Iterator[World]:
    """A world whose projects may have two stacks."""
    made = World(
        postgres_url, types={"Test::LookedUp": LookedUp()}, quotas={"stacks": 2}, enable_stack_adopt=True
    )
    counts_of.cache_clear()
    yield made
    made.close()


def body(name: str, template: Mapping[str, Any]) -> Body:
    return Body(orjson.dumps({"stack_name": name, "template": template}))


def adoption(name: str, template: Mapping[str, Any]) -> Body:
    data = orjson.dumps({"template": template, "resources": {}}).decode()
    return Body(orjson.dumps({"stack_name": name, "adopt_stack_data": data}))


@pytest.mark.parametrize("request_of", [body, adoption])
@pytest.mark.parametrize("read", READERS)
def test_a_name_that_is_taken_is_refused_before_the_template(
    world: World, read: Callable[..., object], request_of: Callable[..., Body]
) -> None:
    world.create("s", {"a": test_resource()})
    for template in (FAULTY, ASKING):
        with pytest.raises(StackExists, match="The Stack \\(s\\) already exists"):
            read(world.context, request_of("s", template))
    looked_up: Any = world.types["Test::LookedUp"]
    assert looked_up.look_ups == 0
    read(world.context, request_of("t", ASKING))
    assert looked_up.look_ups > 0


@pytest.mark.parametrize("read", READERS)
def test_a_full_project_is_refused_before_the_template(world: World, read: Callable[..., object]) -> None:
    world.create("s", {"a": test_resource()})
    world.create("t", {"a": test_resource()})
    with pytest.raises(LimitExceeded, match="maximum stacks per tenant, 2"):
        read(world.context, body("u", FAULTY))
    with pytest.raises(StackExists):
        read(world.context, body("t", FAULTY))


def test_a_name_that_is_taken_during_the_request_is_refused_too(world: World) -> None:
    world.before("validate_create", lambda: world.create("s", {"a": test_resource("first")}))
    with pytest.raises(StackExists):
        world.create("s", {"a": test_resource("second")})
    world.deliver_all()
    assert world.resource("a").properties["value"] == "first"


def test_a_repeated_request_with_the_token_of_the_first_is_recognised(world: World) -> None:
    context = replace(world.context, client_token=ClientToken("once", b"digest"))
    create(context, body("s", ASKING))
    with pytest.raises(TokenTaken):
        create(context, body("s", ASKING))
    with pytest.raises(StackExists):
        create(replace(context, client_token=ClientToken("other", b"digest")), body("s", ASKING))


def test_an_update_of_an_older_revision_is_refused_before_its_template(world: World) -> None:
    world.create("s", {"a": test_resource()})
    world.deliver_all()
    with pytest.raises(RevisionChanged, match="has revision 1, not 2"):
        world.update("s", {"a": {"type": "No::Such"}}, expected_revision=2)
