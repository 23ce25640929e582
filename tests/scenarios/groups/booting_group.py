"""A scaling group whose members boot, signals to it, and the reasons in its events."""

from __future__ import annotations

from typing import Any

from tests.scenarios.fake_cloud import Cloud, cloud_thing
from tests.scenarios.groups.test_scaled_groups import SIZE, scaling
from tests.scenarios.trees import deliver
from tests.scenarios.world import World

NEVER = 1_000_000  # observations until a member is ready


def booting(desired: int = 2, value: str = "v", **options: Any) -> dict[str, Any]:
    """A group whose members are ready only after `boot`."""
    member = cloud_thing(type="Cloud::Server", looks=NEVER, value=value)
    return scaling(desired, **{"max_size": 7, "resource": member, **options})


def boot(world: World, cloud: Cloud, *but: str) -> None:
    """Make all existing members ready, except for the members with these names."""
    make_ready(cloud, *but)
    world.sweep_once()
    deliver(world)
    world.sweep_once()
    deliver(world)


def make_ready(cloud: Cloud, *but: str) -> None:
    for thing in cloud.things:
        if thing.rpartition("-")[0] not in but:
            cloud.looks[thing] = NEVER


def settle(world: World, cloud: Cloud) -> None:
    """Deliver and boot until no work remains."""
    for _ in range(6):
        boot(world, cloud)
    world.deliver_all()


def created(world: World, cloud: Cloud, resources: dict[str, Any], **options: Any) -> str:
    uuid = world.create("s", resources, outputs=SIZE, **options)
    deliver(world)
    settle(world, cloud)
    assert world.state(uuid) == "CREATE_COMPLETE"
    return uuid


def signal(world: World, policy: str = "up", details: Any = None, *, times: int = 1) -> None:
    for _ in range(times):
        world.signal("s", policy, details)
        deliver(world)


def reasons(world: World, policy: str) -> list[str]:
    query = "SELECT status, reason FROM event WHERE resource_name = :n AND action = 'SIGNAL' ORDER BY id"
    return [f"{row.status} {row.reason}" for row in world.rows(query, n=policy)]
