"""Updates in place that make a resource secret, or no longer secret."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

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
