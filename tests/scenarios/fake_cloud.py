"""A provider in memory: every call is counted, and a test may interrupt any of them."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NoReturn

from orchestrator.errors import ProviderUnreachable
from orchestrator.resources.base import (
    Attribute,
    Context,
    Created,
    Observation,
    Property,
    ResourceType,
    Signalled,
    Value,
)


class Crash(BaseException):
    """The worker is dead from here on: nothing in the engine may catch it."""


@dataclass
class Cloud:
    """Existing things, counts of creations, and scheduled actions: `on["create"](ctx)` runs before
    a create.
    """

    things: dict[str, str] = field(default_factory=dict)  # id -> token
    made: Counter[str] = field(default_factory=Counter)  # by logical name
    calls: list[str] = field(default_factory=list)
    values: dict[str, str] = field(default_factory=dict)  # of the things that store a value
    paused: set[str] = field(default_factory=set)
    broken: set[str] = field(default_factory=set)  # ids of things in error
    copies: dict[str, str] = field(default_factory=dict)  # of things: token -> thing
    on: dict[str, Callable[[Context], None]] = field(default_factory=dict)
    looks: Counter[str] = field(default_factory=Counter)  # how often each was looked at while being made
    busy: bool = False
    outage: set[str] = field(default_factory=set)  # verbs without an answer
    numbers: Any = field(default_factory=lambda: itertools.count(1))

    def call(self, verb: str, ctx: Context) -> None:
        """Record a call and run its scheduled action."""
        self.calls.append(f"{verb} {ctx.name}")
        if verb in self.on:
            self.on[verb](ctx)
        if self.busy:
            raise ProviderUnreachable("nobody answers", "ProviderError")
        if verb in self.outage:
            self.refuse_answer()

    def refuse_answer(self) -> NoReturn:
        """Give no answer."""
        raise ProviderUnreachable("no answer", "ProviderError")

    def make(self, ctx: Context) -> str:
        """Create a thing, even if it was requested before."""
        thing = f"{ctx.name}-{next(self.numbers)}"
        self.things[thing] = ctx.token
        self.made[ctx.name] += 1
        return thing

    def types(self) -> dict[str, ResourceType]:
        """Return the types of this cloud, for the engine's registry."""
        return {kind.name: kind(self) for kind in (Blind, Thing, Server, Machine, Bell)}


class Blind(ResourceType):
    """A thing that cannot be looked up by its token."""

    name = "Cloud::Blind"
    calls_out = True
    flight_seconds = 0.0
    properties: ClassVar = {
        "value": Property("string", "Any text.", default=""),
        "errors": Property("integer", "How many things of the name err, and are to be replaced.", default=0),
        "looks": Property("integer", "How many looks it takes until it is ready.", default=0),
        "final": Property("boolean", "Whether an error is for good.", default=False),
    }
    attributes: ClassVar = {"value": Attribute("The text.")}

    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        self.cloud.call("create", ctx)
        thing = self.cloud.make(ctx)
        self.cloud.values[thing] = props["value"]
        if "created" in self.cloud.on:
            self.cloud.on["created"](ctx)
        return Created(thing)

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        self.cloud.call("observe", ctx)
        if physical_id not in self.cloud.things:
            return Observation(exists=False)
        if ctx.action != "DELETE" and physical_id in self.cloud.broken:
            return Observation(exists=True, error="it broke")
        if ctx.action != "DELETE" and 0 < self.cloud.made[ctx.name] <= ctx.properties["errors"]:
            return Observation(exists=True, error="it broke", replaceable=not ctx.properties["final"])
        if ctx.action != "DELETE":
            self.cloud.looks[physical_id] += 1
            if self.cloud.looks[physical_id] <= ctx.properties["looks"]:
                return Observation(exists=True, ready=False, retry_after=1.0)
        return Observation(exists=True, attributes={"value": ctx.properties.get("value", "")})

    def delete(self, ctx: Context, physical_id: str) -> None:
        self.cloud.call("delete", ctx)
        self.cloud.things.pop(physical_id, None)


class Thing(Blind):
    """A thing that can."""

    name = "Cloud::Thing"

    def find(self, ctx: Context, token: str) -> str | None:
        self.cloud.call("find", ctx)
        return next((thing for thing, made_with in self.cloud.things.items() if made_with == token), None)


class Server(Thing):
    """A thing that can be changed in place, and keeps its value itself."""

    name = "Cloud::Server"
    properties: ClassVar = {
        **Blind.properties,
        "value": Property("string", "Any text.", default="", update_allowed=True),
        "looks": Property("integer", "How many looks each change takes.", default=0, update_allowed=True),
    }

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        self.cloud.call("update", ctx)
        self.cloud.values[physical_id] = props["value"]
        self.cloud.looks[physical_id] = 0
        return Created(physical_id)

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        observed = super().observe(ctx, physical_id)
        return (
            replace(observed, attributes={"value": self.cloud.values.get(physical_id)})
            if observed.exists
            else observed
        )


class Machine(Server):
    """A server that can be paused and copied, has attributes, and may recover by itself."""

    name = "Cloud::Machine"
    properties: ClassVar = {
        **Server.properties,
        "mends": Property("boolean", "Whether it is well again after a failure.", default=False),
        "given_up": Property("boolean", "Whether nobody need wait for it.", default=False),
        "source": Property("string", "The copy it is made from.", default=""),
    }

    def suspend(self, ctx: Context, physical_id: str) -> None:
        self.cloud.call("suspend", ctx)
        self.cloud.paused.add(physical_id)

    def resume(self, ctx: Context, physical_id: str) -> None:
        self.cloud.call("resume", ctx)
        self.cloud.paused.discard(physical_id)

    def snapshot(self, ctx: Context, physical_id: str) -> Mapping[str, Value]:
        self.cloud.call("snapshot", ctx)
        self.cloud.copies[ctx.token] = physical_id
        if "copied" in self.cloud.on:
            self.cloud.on["copied"](ctx)
        return {"copy": ctx.token}

    def restored(self, properties: Mapping[str, Value], kept: Mapping[str, Value]) -> Mapping[str, Value]:
        return {**properties, "source": kept["copy"]}

    def delete_snapshot(self, ctx: Context, kept: Mapping[str, Value]) -> None:
        self.cloud.call("delete_snapshot", ctx)
        self.cloud.copies.pop(kept.get("copy", ctx.token), None)

    def is_healthy_after_failure(self, ctx: Context, physical_id: str) -> bool:
        return bool(ctx.properties["mends"]) and physical_id in self.cloud.things

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        observed = super().observe(ctx, physical_id)
        if not observed.exists:
            return observed
        return replace(observed, properties={"value": self.cloud.values.get(physical_id)})


class Bell(Thing):
    """A thing that is ready after a number of signals, and stores their data."""

    name = "Cloud::Bell"
    properties: ClassVar = {
        **Thing.properties,
        "rings": Property("integer", "How often.", default=1, update_allowed=True),
    }
    attributes: ClassVar = {
        **Thing.attributes,
        "said": Attribute("What was said."),
        "secret": Attribute("What nobody may read.", secret=True),
    }

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        observed = super().observe(ctx, physical_id)
        said = list(ctx.data.get("said", []))
        if observed.exists and ctx.action == "CREATE" and len(said) < ctx.properties["rings"]:
            return Observation(exists=True, ready=False, retry_after=None, reason=f"{len(said)} rings")
        hidden = {"secret": "s3cret"} if ctx.properties.get("value") == "secret" else {}
        return replace(observed, attributes={"said": said, **hidden}) if observed.exists else observed

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        self.cloud.call("update", ctx)
        return Created(physical_id)

    def signal(self, ctx: Context, physical_id: str, details: Value) -> Signalled:
        self.cloud.call("signal", ctx)
        if details == {"wrong": True}:
            raise ValueError("nobody understands that")
        said = [*ctx.data.get("said", []), details]
        result = f"{len(said)} so far" if details and "say" in details else ""
        return Signalled(result, data={"said": said}, metadata={**ctx.metadata, str(len(said)): details})


def cloud_thing(
    requires: tuple[str, ...] = (), type: str = "Cloud::Thing", **properties: Any
) -> dict[str, Any]:
    """A thing as a template has it."""
    snippet: dict[str, Any] = {"type": type, "properties": properties}
    return snippet | ({"depends_on": list(requires)} if requires else {})
