"""Resources that wait for signals, and readers of their rows."""

from __future__ import annotations

import pytest

from tests.scenarios.fake_cloud import Bell, cloud_thing
from tests.scenarios.world import World


@pytest.fixture
def world(postgres_url, cloud):
    quiet = type("Quiet", (Bell,), {"name": "Cloud::Quiet", "calls_out": False})  # a local type
    made = World(postgres_url, types={**cloud.types(), "Cloud::Quiet": quiet(cloud)})
    yield made
    made.close()


def bell(rings=0, metadata=None, type="Cloud::Bell", **properties):
    made = cloud_thing(type=type, rings=rings, **properties)
    return made if metadata is None else {**made, "metadata": metadata}


def with_bell(world, **options):
    uuid = world.create("s", {"b": bell(**options)})
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    return uuid


def data(world, name="b"):
    [row] = world.rows("SELECT data, metadata, attributes, lease FROM resource WHERE name = :n", n=name)
    assert row.lease is None
    return row


def pending(world):
    return world.rows("SELECT id, tries FROM signal ORDER BY id")


def signals_told(world, uuid):
    return [item for item in world.event_reasons(uuid, "b") if item.startswith("SIGNAL")]
