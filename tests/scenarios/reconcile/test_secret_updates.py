"""Updates in place that make a resource secret, or no longer secret."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from tests.scenarios.fake_cloud import Cloud, cloud_thing
from tests.scenarios.world import World

HIDDEN = {"h": {"type": "string", "hidden": True, "default": "tellnobody"}}
VALUES: dict[str, Any] = {"secret": {"get_param": "h"}, "open": "open"}


@pytest.fixture
def clouded(postgres_url: str, cloud: Cloud) -> Iterator[World]:
    made = World(postgres_url, types=cloud.types())
    yield made
    made.close()


@pytest.mark.parametrize(("before", "after"), [("open", "secret"), ("secret", "open")])
def test_a_resource_that_is_or_was_secret_is_encrypted(
    clouded: World, cloud: Cloud, before: str, after: str
) -> None:
    def server(value: str) -> dict[str, Any]:
        return {"a": cloud_thing(type="Cloud::Server", value=VALUES[value], looks=2)}

    uuid = clouded.create("s", server(before), parameters=HIDDEN)
    clouded.deliver_all()
    clouded.update("s", server(after), parameters=HIDDEN)
    clouded.deliver_all()
    assert clouded.state(uuid) == "UPDATE_COMPLETE"
    row = clouded.rows("SELECT row_to_json(r)::text AS text, sealed FROM resource r")[0]
    assert row.sealed is not None
    assert "tellnobody" not in row.text
    assert list(cloud.values.values()) == ["tellnobody" if after == "secret" else "open"]


KID = "file:///kid.yaml"


@pytest.mark.parametrize(("before", "after"), [("open", "secret"), ("secret", "open")])
@pytest.mark.parametrize("wrong", [False, True])
def test_a_nested_stack_that_is_or_was_secret_is_encrypted(
    clouded: World, before: str, after: str, *, wrong: bool
) -> None:
    """Its resource waits for it, and may fail, between the old and the new values."""
    kid = {
        "heat_template_version": "2021-04-16",
        "parameters": {"p": {"type": "string"}, "q": {"type": "string", "default": ""}},
        "resources": {"v": {"type": "OS::Heat::TestResource", "properties": {"value": {"get_param": "p"}}}},
        "outputs": {"o": {"value": {"get_attr": ["v", "output"]}}},
    }
    failing = {**kid, "resources": {"v": {"type": "OS::Heat::TestResource", "properties": {"fail": True}}}}

    def request(value: str, template: dict[str, Any]) -> dict[str, Any]:
        properties = {"p": VALUES[value]}
        above = {"get_attr": ["kid", "o"]}
        return {
            "resources": {
                "kid": {"type": KID, "properties": properties},
                "above": {"type": "OS::Heat::TestResource", "properties": {"value": above}},
            },
            "parameters": HIDDEN,
            "files": {KID: orjson.dumps(template).decode()},
        }

    uuid = clouded.create("s", **request(before, kid))
    clouded.deliver_all()
    clouded.update("s", **request(after, failing if wrong else kid))
    clouded.deliver_all()
    assert clouded.state(uuid) == ("UPDATE_FAILED" if wrong else "UPDATE_COMPLETE")
    if wrong:
        clouded.update("s", **request(after, kid))
        clouded.deliver_all()
        assert clouded.state(uuid) == "UPDATE_COMPLETE"
    assert "tellnobody" not in str(clouded.rows("SELECT row_to_json(r)::text FROM resource r"))
