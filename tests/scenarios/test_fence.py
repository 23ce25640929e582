"""A check of a traversal that was superseded between its look and its write writes nothing (operations/adr/0001)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from orchestrator.resources.base import Context, Created, Observation, ResourceType
from tests.scenarios.world import World


class Interrupted(ResourceType):
    """Calls nobody, but lets the test act in the middle of its create."""

    name = "Test::Interrupted"
    calls_out = False
    any_properties = True

    def __init__(self) -> None:
        self.meanwhile: Callable[[], None] = lambda: None

    def create(self, ctx: Context, props: Mapping[str, Any]) -> Created:
        act, self.meanwhile = self.meanwhile, lambda: None
        act()
        return Created(ctx.physical_name)

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        return Observation(exists=ctx.action != "DELETE")

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Nothing to remove."""


def test_a_superseded_check_writes_nothing_and_the_newer_traversal_has_the_last_word(postgres_url: str):
    kind = Interrupted()
    world = World(postgres_url, types={kind.name: kind})
    uuid = world.create("s", {"a": {"type": kind.name}, "b": {"type": kind.name, "depends_on": "a"}})
    world.deliver(1)
    kind.meanwhile = lambda: world.delete("s")
    world.deliver(1)
    [(action, status, lease)] = world.rows("SELECT action, status, lease FROM resource WHERE name = 'a'")
    assert (action, status, lease) == ("INIT", "COMPLETE", None)
    assert world.rows("SELECT state FROM graph_node WHERE kind = 'update' AND label = 'a'") == [("dropped",)]
    assert "a CREATE_COMPLETE" not in world.events(uuid)
    world.deliver_all()
    assert world.state(uuid) == "DELETE_COMPLETE"
    assert world.rows("SELECT 1 FROM resource") == []
    world.close()
