"""The contract finds a type to which the fault of a single call does harm, and deletes what tests leave."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from orchestrator.errors import ProviderError
from orchestrator.resources.base import Context, Created, Observation, Property, ResourceType, Value
from orchestrator.schema.translation import Resolve
from orchestrator.testing.contract import TypeContract
from orchestrator.testing.faults import FAULTS
from orchestrator.testing.operated import Operated
from orchestrator.testing.samples import Intercept, Sample
from orchestrator.testing.scripted_cloud import ScriptedCloud


class Service:
    """Disks in memory; a disk is attached after it was created, and detached before its delete."""

    def __init__(self) -> None:
        self.disks: dict[str, dict[str, Any]] = {}
        self.intercept: Intercept = lambda send: send()
        self.numbers = itertools.count(1)

    def create(self, token: str, **values: Any) -> str:
        return str(self.intercept(lambda: self._create(token, **values)))

    def _create(self, token: str, **values: Any) -> str:
        id_ = f"disk-{next(self.numbers)}"
        self.disks[id_] = {"token": token, "attached": False, **values}
        return id_

    def get(self, id_: str) -> dict[str, Any] | None:
        disk = self.intercept(lambda: self.disks.get(id_))
        return None if disk is None else dict(disk)

    def listed(self, token: str) -> list[str]:
        found: list[str] = self.intercept(
            lambda: [id_ for id_, disk in self.disks.items() if disk["token"] == token]
        )
        return found

    def change(self, id_: str, **values: Any) -> None:
        self.intercept(lambda: self.disks[id_].update(values))

    def attach(self, id_: str) -> None:
        self.intercept(lambda: self._attach(id_))

    def _attach(self, id_: str) -> None:
        if self.disks[id_]["attached"]:
            raise ProviderError("it is attached already")
        self.disks[id_]["attached"] = True

    def delete(self, id_: str) -> bool:
        return self.intercept(lambda: self.disks.pop(id_, None)) is not None


class Disk(ResourceType):
    """A disk that is created and attached."""

    name = "Test::Disk"
    properties: ClassVar = {"size": Property("integer", "Its size.", default=1, update_allowed=True)}

    def __init__(self, service: Service) -> None:
        self.service = service

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        return Created(self.service.create(ctx.token, size=props["size"]))

    def find(self, ctx: Context, token: str) -> Sequence[str]:
        return self.service.listed(token)

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        disk = self.service.get(physical_id)
        if disk is None:
            return Observation(exists=False)
        if ctx.action != "DELETE" and not disk["attached"]:
            return Observation(exists=True, step="attach")
        return Observation(exists=True)

    def advance(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], step: str
    ) -> Created | None:
        self.service.attach(physical_id)
        return None

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        self.service.change(physical_id, size=props["size"])
        return Created(physical_id)

    def delete(self, ctx: Context, physical_id: str) -> None:
        self.service.delete(physical_id)


class Unobserved(Disk):
    """Attaches a disk until an answer says that it is attached."""

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        if self.service.get(physical_id) is None:
            return Observation(exists=False)
        return Observation(exists=True, step="" if ctx.data or ctx.action != "CREATE" else "attach")

    def advance(self, ctx: Context, physical_id: str, props: Mapping[str, Value], step: str) -> Created:
        self.service.attach(physical_id)
        return Created(physical_id, {"attached": True})


class Strict(Disk):
    """Does not accept that a disk is absent."""

    def delete(self, ctx: Context, physical_id: str) -> None:
        if not self.service.delete(physical_id):
            raise ProviderError("there is no such disk")


class Hasty(Disk):
    """Repeats a create by itself."""

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        try:
            return super().create(ctx, props)
        except ProviderError:
            return super().create(ctx, props)


def operate(kind: type[Disk]) -> tuple[Service, Callable[[], Operated], Sample]:
    service = Service()

    @contextmanager
    def intercept(call: Intercept) -> Iterator[None]:
        service.intercept = call
        yield
        service.intercept = lambda send: send()

    sample = Sample(kind.name, intercept=intercept)
    return service, lambda: Operated(kind(service), {}, sample), sample


def check(kind: type[Disk], fault: str) -> None:
    _, factory, sample = operate(kind)
    TypeContract().test_a_fault_of_any_call_changes_no_end(factory, sample, fault)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_type_that_expects_faults_passes(fault: str) -> None:
    check(Disk, fault)


@pytest.mark.parametrize(
    ("kind", "fault", "harm"),
    [
        (Unobserved, "lost", "it is attached already"),
        (Strict, "lost", "there is no such disk"),
        (Hasty, "lost", "leaves"),
        (Hasty, "late", "leaves"),
    ],
)
def test_a_type_that_is_harmed_fails(kind: type[Disk], fault: str, harm: str) -> None:
    with pytest.raises((AssertionError, ProviderError), match=harm):
        check(kind, fault)


def test_objects_are_deleted_at_the_end_of_a_test() -> None:
    service, factory, _ = operate(Disk)
    operated = factory()
    operated.create()
    operated.create()  # the answer of the first was lost
    service._create(operated.ctx.token, size=1)  # and this was never seen
    operated.clean_up()
    assert service.disks == {}


def test_an_object_that_stays_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    service, factory, _ = operate(Disk)
    monkeypatch.setattr(service, "delete", lambda _: None)
    operated = factory()
    operated.sample = Sample("Test::Disk", patience_seconds=0.1)
    operated.create()
    with pytest.raises(AssertionError, match="the operation does not end"):
        operated.clean_up()


class Numbered(Disk):
    """A disk has a number, which only one disk has at a time; it gives the number up in two steps."""

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        disk = self.service.get(physical_id)
        if ctx.action == "RELEASE" and disk is not None:
            step = "detach" if disk["attached"] else "forget" if disk.get("number") else ""
            return Observation(exists=True, step=step, released=not step)
        return super().observe(ctx, physical_id)

    def advance(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], step: str
    ) -> Created | None:
        match step:
            case "detach":
                self.service.change(physical_id, attached=False)
            case "forget":
                self.service.change(physical_id, number=None)
            case _:
                return super().advance(ctx, physical_id, props, step)
        return None

    def release(self, ctx: Context, physical_id: str) -> None:
        self.service.get(physical_id)

    def reclaim(self, ctx: Context, physical_id: str, props: Mapping[str, Value]) -> None:
        self.service.change(physical_id, number=1)


class Greedy(Numbered):
    """Keeps its number."""

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        seen = super().observe(ctx, physical_id)
        disk = self.service.disks.get(physical_id) or {}
        return seen if ctx.action != "RELEASE" else Observation(exists=True, released=not disk["attached"])


class Forgetful(Numbered):
    """Does not attach a disk again."""

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        if ctx.action != "RECLAIM":
            return super().observe(ctx, physical_id)
        return Observation(exists=True, properties={"attached": self.service.disks[physical_id]["attached"]})


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_of_a_release_and_its_return_do_no_harm(fault: str) -> None:
    check(Numbered, fault)


@pytest.mark.parametrize("kind", [Numbered, Greedy, Forgetful])
def test_a_release_and_its_return_are_part_of_the_contract(kind: type[Disk]) -> None:
    _, factory, _ = operate(kind)

    def run() -> None:
        TypeContract().test_a_release_and_its_return_may_run_twice(factory())
        TypeContract().test_delete_accepts_a_released_object(factory())

    if kind is Numbered:
        run()
        return
    with pytest.raises(AssertionError):
        run()


class Placed(Disk):
    """A disk with a place, which has a name."""

    properties: ClassVar = {**Disk.properties, "network": Property("string", "Its place.")}
    translation: ClassVar = (Resolve(("network",), "neutron.network"),)


def test_names_are_resolved_like_in_the_engine() -> None:
    script = ScriptedCloud()
    script.answers("GET", r"/networks\?.*", {"networks": [{"id": "n1", "name": "blue"}]})
    sample = Sample(Placed.name, prepare_context=lambda ctx: replace(ctx, cloud=script.cloud))
    operated = Operated(Placed(Service()), {"network": "blue"}, sample)
    assert operated.ctx.properties["network"] == "n1"
    operated.create()
    operated.update(size=2)
    assert operated.ctx.properties == {"network": "n1", "size": 2}
