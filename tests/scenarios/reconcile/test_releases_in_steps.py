"""A release and its return may need several requests (orchestrator/operations/adr/0013)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from orchestrator.errors import ProviderError
from orchestrator.resources.base import Context, Created, Observation, Property, ResourceType, Value
from tests.scenarios.world import World

STEPS = {"RELEASE": ("unload", "leave"), "RECLAIM": ("enter", "load")}


class Berth(ResourceType):
    """A ship at the only berth: it is unloaded, then it leaves; it enters, then it is loaded."""

    name = "Test::Ship"
    properties = {"cargo": Property("string")}  # noqa: RUF012

    def __init__(self) -> None:
        self.progress: dict[str, int] = {}  # of the ships: requests of their release that were carried out
        self.requests: list[str] = []
        self.slow = False  # a step takes effect at the second request

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        if any(done < 2 for done in self.progress.values()):
            raise ProviderError("the berth is in use")
        self.progress[ctx.physical_name] = 0
        if props.get("cargo") == "refused":
            del self.progress[ctx.physical_name]
            raise ProviderError("no such cargo")
        return Created(ctx.physical_name)

    def find(self, ctx: Context, token: str) -> str | None:
        return ctx.physical_name if ctx.physical_name in self.progress else None

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        if physical_id not in self.progress:
            return Observation(exists=False)
        done = self.progress[physical_id]
        left = {"RELEASE": 2 - done, "RECLAIM": done}.get(ctx.action, 0)
        return Observation(exists=True, step=STEPS[ctx.action][-left] if left else "")

    def release(self, ctx: Context, physical_id: str) -> None:
        self.requests.append("release")

    def reclaim(self, ctx: Context, physical_id: str, props: Mapping[str, Value]) -> None:
        self.requests.append("reclaim")

    def advance(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], step: str
    ) -> Created | None:
        assert ctx.step == step
        repeated = f"{physical_id} {step}" in self.requests
        self.requests.append(f"{physical_id} {step}")
        if repeated or not self.slow:
            self.progress[physical_id] += 1 if ctx.action == "RELEASE" else -1
        return None

    def delete(self, ctx: Context, physical_id: str) -> None:
        self.progress.pop(physical_id, None)

    def verbs(self) -> list[str]:
        """Return the requests without the names of the ships."""
        return [request.rpartition(" ")[2] for request in self.requests]


def ship(cargo: str) -> dict[str, Any]:
    return {"ship": {"type": Berth.name, "properties": {"cargo": cargo}}}


@pytest.mark.parametrize("slow", [False, True], ids=["at once", "repeated"])
def test_the_steps_of_a_release_precede_the_replacement(postgres_url: str, slow: bool) -> None:
    berth = Berth()
    world = World(postgres_url, types={Berth.name: berth})
    uuid = world.create("s", ship("coal"))
    world.deliver_all()
    berth.slow = slow
    world.update("s", ship("corn"))
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    steps = ["release", "unload", "leave"]
    again = ["release", "unload", "release", "unload", "leave", "release", "leave"]
    assert berth.verbs() == (again if slow else steps)
    assert len(berth.progress) == 1
    world.close()


def test_the_steps_of_the_return_end_a_rollback(postgres_url: str) -> None:
    berth = Berth()
    world = World(postgres_url, types={Berth.name: berth})
    uuid = world.create("s", ship("coal"), disable_rollback=False)
    world.deliver_all()
    (first,) = berth.progress
    world.update("s", ship("refused"), disable_rollback=False)
    world.deliver_all()
    assert world.state(uuid) == "ROLLBACK_COMPLETE"
    assert berth.progress == {first: 0}
    assert berth.verbs() == ["release", "unload", "leave", "reclaim", "enter", "load"]
    world.close()
