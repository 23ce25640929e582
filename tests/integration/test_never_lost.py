"""A worker may be killed at any instant: the stack completes by itself, and everything was made once.

What is asserted is what the log of the things' server says. Each test arms a few points of the engine's path at once, one kill each.
"""

from __future__ import annotations

import pytest

from tests.integration.cluster import (
    Cluster,
    cluster,
    made_once,
    new_cluster,
    thing_type_known,
    tree,
)
from tests.plugins.thing_fixture import ThingServer, things

__all__ = ["cluster", "new_cluster", "thing_type_known", "things"]

CREATING = {
    "claiming": [("claim", "before"), ("claim", "after"), ("look", "after")],
    "asking": [("begin", "before"), ("begin", "after"), ("create", "before"), ("create", "after")],
    "writing down": [("settle", "before"), ("settle", "after"), ("publish", "before"), ("publish", "after")],
    "planning": [("slice", "before"), ("copy", "after"), ("settle_nodes", "before"), ("settle_nodes", "after")],
    "finishing": [("complete", "before"), ("complete", "after")],
    "sweeping": [("sweep", "after")],
}


@pytest.mark.parametrize("points", CREATING.values(), ids=CREATING)
def test_workers_killed_while_creating(cluster: Cluster, things: ThingServer, points: list[tuple[str, str]]):
    for point in points:
        cluster.arm(*point)
    resources = tree()
    uuid = cluster.create("s", resources)
    took = cluster.wait(uuid, "CREATE_COMPLETE")
    print(points, took)
    cluster.finish_points(points)
    made_once(things, resources)
