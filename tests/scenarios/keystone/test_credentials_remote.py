"""Other regions as Keystone's catalog has them, called by the right that a stack holds."""

# ruff: noqa: F811 - fixtures are imported
from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.errors import InvalidTemplate
from orchestrator.security.caller import Caller, Login
from orchestrator.security.tokens import create_token
from tests.plugins.region_fixture import Region, region  # noqa: F401 - a fixture
from tests.plugins.stand_in_keystone import StandIn, identity  # noqa: F401 - a fixture
from tests.scenarios.keystone.credential_world import (
    NOTHING,
    PROJECT,
    installation,
    keystone,
    later,
    tidy,
    world,
)
from tests.scenarios.world import World

__all__ = ["installation", "keystone", "world"]


def test_another_region_is_found_in_keystones_catalog_and_called_with_the_trust(
    postgres_url: str, keystone: StandIn, region: Region, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keystone, "regions", [("elsewhere", f"{region.url}/{region.projects['north']}")])
    # The second region accepts only its own tokens: a token from a trust of this region, and a token of ada.
    by_trust = region.tokens["north"]
    by_hand = create_token(region.world.database, region.projects["north"])
    monkeypatch.setattr("tests.plugins.stand_in_keystone.Handler.issue", _issue_of(by_trust))
    keystone.knows(by_hand, project=PROJECT)
    world = World(postgres_url, **keystone.settings())
    try:
        login = Login(by_hand, PROJECT, ("member",), ("member",))
        world.context = replace(world.context, caller=Caller(PROJECT, "ada", user_id="u1", login=login))
        existing = {"heat_template_version": "2021-04-16", "resources": NOTHING}
        where = {"context": {"region_name": "elsewhere"}, "template": json.dumps(existing)}
        uuid = world.create("mine", {"far": {"type": "OS::Heat::Stack", "properties": where}})
        assert keystone.asked == [*keystone.asked[:-1], by_hand]  # as whom the template was looked at
        world.deliver_all()
        assert world.state(uuid) == "CREATE_COMPLETE", world.rows("SELECT reason FROM failure")
        assert list(region.stacks().values()) == ["CREATE_COMPLETE"]
    finally:
        world.close()


def test_a_region_that_keystone_does_not_know_is_no_place_for_a_stack(
    world: World, keystone: StandIn
) -> None:
    existing = {"heat_template_version": "2021-04-16", "resources": NOTHING}
    where = {"context": {"region_name": "nowhere"}, "template": json.dumps(existing)}
    with pytest.raises(InvalidTemplate) as refused:
        world.create("mine", {"far": {"type": "OS::Heat::Stack", "properties": where}})
    assert str(refused.value).endswith(
        'Cannot establish connection to Heat endpoint at region "nowhere" due to '
        '"publicURL endpoint for orchestration service in nowhere region not found"'
    )
    later(world)
    tidy(world)
    assert not keystone.trusts


def _issue_of(text: str) -> Callable[..., None]:
    def issue(self: Any, made: dict[str, Any]) -> None:
        self.told(201, made, text)

    return issue
