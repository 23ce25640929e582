"""The stacks of a tree share one place in the budgets of services."""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.clients.keystone.cloud_session import Cloud
from orchestrator.resources.base import Context, Created, Observation, ResourceType, Value
from orchestrator.resources.openstack.connection import openstack
from tests.scenarios.trees import CHILD, nested, text
from tests.scenarios.world import World

NO_CLOUD = Cloud(lambda: None, "RegionOne")


class Caller(ResourceType):
    """Remembers for whom it would call a service."""

    name = "Test::Caller"

    def __init__(self) -> None:
        self.owners: set[str] = set()

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        assert ctx.cloud is None
        self.owners.add(openstack(Context("", "", "", "", cloud=NO_CLOUD, location=ctx.location)).owner)
        return Created(ctx.physical_name)

    def find(self, ctx: Context, token: str) -> str | None:
        return None

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        return Observation(exists=ctx.action != "DELETE")

    def delete(self, ctx: Context, physical_id: str) -> None: ...


def test_the_requests_of_nested_stacks_count_for_their_root(postgres_url: str) -> None:
    caller = Caller()
    world = World(postgres_url, types={Caller.name: caller})
    own = {"type": Caller.name}
    children = {name: nested(value=name) for name in ("a", "b")}
    uuid = world.create("s", {"own": own, **children}, files={CHILD: text({"inner": own})})
    world.deliver_all()
    assert (world.state(uuid), len(caller.owners)) == ("CREATE_COMPLETE", 1)
    other = world.create("t", {"own": own})
    world.deliver_all()
    assert (world.state(other), len(caller.owners)) == ("CREATE_COMPLETE", 2)
    world.close()
