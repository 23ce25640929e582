"""A provider in memory that keeps a log, records forbidden requests, and fails on request.

`wrong` has everything that broke a rule of the engine's protocol, as it happened:

* a request token has a single living thing;
* nothing is changed, paused or woken while an operation on it is open (a removal may cut any short), and
  nothing is changed while it is paused;
* a thing is created, or changed, only when its requirements exist and are at rest;
* a thing is removed only when nothing living stands on it.

The requirements of a thing are known twice: from the ids it was given (the property `on`), and from the rows
recorded (`recorded`, which a simulator sets).
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

from orchestrator.errors import ProviderBusy, ProviderError, ProviderSilent
from orchestrator.resources.base import (
    Attribute,
    Context,
    Created,
    Observation,
    Property,
    ResourceType,
    Value,
)
from tests.scenarios.fake_cloud import Crash

IN_PLACE = ("a", "b", "c", "ca")
FIXED = ("!a", "!b")

# How a call fares. Calls in `ASKED` were carried out, or will be when time passes.
FATES = ("done", "busy", "refused", "silent", "late", "lost", "killed", "killed late", "killed after")
ERRORS = ("broken", "dead")  # of a create or a change: it is carried out, and comes to nothing
CALL_HOURS = 2  # every call ends within its deadline: it cannot last as long


@dataclass
class Thing:
    """Something that is there."""

    id: str
    token: str
    name: str
    properties: dict[str, Any]
    opened: str | None  # the operation that has not ended
    looks: int  # how many more it takes to see its end
    error: str = ""
    paused: bool = False
    dock: str | None = None  # what only one thing has at a time
    leaving: int = 0  # how many more looks a release takes
    late: bool = False  # a late request has changed it

    @property
    def stands_on(self) -> set[str]:
        """The ids that it was given."""
        return {item for item in self.properties.get("on") or () if item}


Fate = Callable[[str, Context], str]


def done(_verb: str, _ctx: Context) -> str:
    """All goes well."""
    return "done"


@dataclass
class Provider:
    """Existing things, the log of requests, and the violations."""

    things: dict[str, Thing] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)  # ids of things that others have removed
    copies: dict[str, str] = field(default_factory=dict)  # of things: token -> id
    log: list[tuple[str, str, str]] = field(default_factory=list)  # verb, name, id of each executed request
    calls: Counter[tuple[str, str]] = field(default_factory=Counter)  # by verb and name
    invalid: list[str] = field(default_factory=list)
    fate: Fate = done
    in_flight: list[Callable[[], Any]] = field(default_factory=list)
    required: Callable[[str], list[str]] = lambda _token: []  # required ids in the engine's rows
    dependents: Callable[[str], list[str]] = lambda _id: []  # dependent ids in the engine's rows
    meanwhile: Callable[[str, Context], None] = lambda _verb, _ctx: None  # before a call, or `<verb>d` after
    landing: bool = False  # a delayed request is being executed
    hours: int = 0  # that have passed
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def types(self) -> dict[str, ResourceType]:
        """Return the types of this provider."""
        return {kind.name: kind(self) for kind in (Changeable, Rigid, Docked)}

    # The requests of the types.

    def ask(self, verb: str, ctx: Context, act: Callable[[], Any]) -> Any:
        """Let a call fare as it is to."""
        self.calls[verb, ctx.name] += 1
        began = self.hours
        self.meanwhile(verb, ctx)
        self._deadline(began)
        fate = self.fate(verb, ctx)
        match fate:
            case "busy":
                raise ProviderBusy("too many requests")
            case "refused":
                raise ProviderError("it is not allowed")
            case "silent":
                raise ProviderSilent("no answer")
            case "late" | "killed late":
                self.in_flight.append(act)
                raise ProviderSilent("no answer") if fate == "late" else Crash
            case "killed":
                raise Crash
        result = act()
        if fate in ERRORS and isinstance(result, Thing):
            result.error = fate
        if fate == "lost":
            raise ProviderSilent("no answer")
        if fate == "killed after":
            raise Crash
        self.meanwhile(f"{verb}d", ctx)
        self._deadline(began)
        return result

    def _deadline(self, began: int) -> None:
        """End a call without an answer in which hours passed: other workers acted in the middle of it."""
        if self.hours - began >= CALL_HOURS:
            raise ProviderSilent("no answer in time")

    def land(self) -> None:
        """Time passes: delayed requests are executed."""
        self.hours += 1
        self.landing = True
        while self.in_flight:
            with suppress(ProviderError):  # nobody reads the answer
                self.in_flight.pop(0)()
        self.landing = False

    def create(self, ctx: Context, properties: Mapping[str, Any]) -> Thing:
        """Make a thing."""
        began = self.hours
        thing = Thing(
            f"{ctx.name}-{next(self.numbers)}",
            ctx.token,
            ctx.name,
            dict(properties),
            "create",
            properties.get("looks") or 0,
        )
        self._dock(thing, properties.get("dock"))
        if any(other.token == ctx.token for other in self.things.values()):
            self.invalid.append(f"a second {ctx.name} for one token")
        self._stands(f"{thing.id} is made", thing)
        self._deadline(began)
        self.things[thing.id] = thing
        self.log.append(("create", ctx.name, thing.id))
        return thing

    def update(self, ctx: Context, id_: str, properties: Mapping[str, Any]) -> Thing:
        """Change a thing."""
        thing = self.things.get(id_)
        if thing is None:
            raise ProviderError(f"there is no {id_}")
        self._arrives(thing, properties.get("on") or ())
        busy = thing.opened is not None and not (thing.opened == "update" and thing.token == ctx.token)
        if busy and not thing.late:
            self.invalid.append(f"{id_} is changed while its {thing.opened} is open")
        if thing.paused and not thing.late:
            self.invalid.append(f"{id_} is changed while it is paused")
        thing.properties = dict(properties)
        thing.opened, thing.looks, thing.error = "update", properties.get("looks") or 0, ""
        self._stands(f"{id_} is changed", thing)
        self.log.append(("update", ctx.name, id_))
        return thing

    def delete(self, ctx: Context, id_: str) -> None:
        """Remove a thing; its absence is seen after as many looks as it takes."""
        thing = self.things.get(id_)
        if thing is None or thing.opened == "delete":
            return
        began = self.hours
        above = {other.id for other in self.things.values() if id_ in other.stands_on and other is not thing}
        above -= {other.id for other in self.things.values() if other.late}
        above |= {other for other in self.dependents(id_) if other in self.things and other != id_}
        if above:
            self.invalid.append(f"{id_} is removed under {sorted(above)}")
        self._deadline(began)
        thing.opened, thing.looks = "delete", thing.properties.get("looks") or 0
        self.log.append(("delete", ctx.name, id_))

    def pause(self, ctx: Context, id_: str, paused: bool) -> None:
        """Pause a thing, or wake it."""
        thing, verb = self.things.get(id_), "suspend" if paused else "resume"
        if thing is None:
            raise ProviderError(f"there is no {id_}")
        self._arrives(thing)
        if thing.opened not in (None, verb) and not thing.late:
            self.invalid.append(f"a {verb} of {id_} while its {thing.opened} is open")
        thing.opened, thing.looks, thing.paused = verb, thing.properties.get("looks") or 0, paused
        self.log.append((verb, ctx.name, id_))

    def copy(self, ctx: Context, id_: str) -> str:
        """Copy a thing, once for a token."""
        thing = self.things.get(id_)
        if thing is None:
            raise ProviderError(f"there is no {id_}")
        if thing.opened not in (None, "copy"):
            self.invalid.append(f"a copy of {id_} while its {thing.opened} is open")
        if self.copies.get(ctx.token, id_) != id_:
            self.invalid.append(f"a copy of {id_} under a token of another's")
        self.copies[ctx.token] = id_
        return ctx.token

    def damage(self, id_: str, fault: str) -> None:
        """Damage a thing behind the engine's back: it is `lost`, `dead`, or one of its properties changes."""
        thing = self.things[id_]
        if fault == "lost":
            del self.things[id_]
            self.lost.add(id_)
        elif fault == "dead":
            thing.error = fault
        else:
            thing.properties[fault] = "foreign"

    def release(self, ctx: Context, id_: str) -> None:
        """Let a thing leave its dock; it takes as many looks as its operations."""
        thing = self.things.get(id_)
        if thing is not None and thing.dock is not None and not thing.leaving:
            thing.leaving = 1 + (thing.properties.get("looks") or 0)
            self.log.append(("release", ctx.name, id_))

    def reclaim(self, ctx: Context, id_: str, properties: Mapping[str, Any]) -> None:
        """Let a thing return to its dock."""
        thing = self.things.get(id_)
        if thing is None:
            raise ProviderError(f"there is no {id_}")
        self._dock(thing, properties.get("dock"))
        thing.leaving = 0
        self.log.append(("reclaim", ctx.name, id_))

    def _arrives(self, thing: Thing, on: Iterable[str] = ()) -> None:
        """Take note of a request that arrives late: newer requests do not know of it."""
        if not self.landing:
            return
        if thing.opened == "delete" or any(id_ and id_ not in self.things for id_ in on):
            raise ProviderError("it is too late")
        thing.late = True

    def rename(self, ctx: Context, id_: str, dock: str) -> None:
        """Move a thing to another dock."""
        if (thing := self.things.get(id_)) is not None:
            self._dock(thing, dock)
            self.log.append(("rename", ctx.name, id_))

    def _dock(self, thing: Thing, dock: str | None) -> None:
        if dock is not None and any(it.dock == dock for it in self.things.values() if it is not thing):
            raise ProviderError(f"{dock} is in use")
        thing.dock = dock

    def observe(self, id_: str, action: str = "CHECK") -> Observation:
        """Look at a thing: each look brings the end of its operation nearer."""
        thing = self.things.get(id_)
        if thing is None:
            return Observation(exists=False)
        if thing.leaving:
            thing.leaving -= 1
            if not thing.leaving:
                thing.dock = None
            return Observation(exists=True, released=not thing.leaving, retry_after=1.0)
        if thing.looks > 0:
            thing.looks -= 1
            return Observation(exists=True, ready=False, retry_after=1.0)
        if thing.opened == "delete":
            del self.things[id_]
            return Observation(exists=False)
        if thing.error:
            thing.opened = None
            return Observation(exists=True, error=f"it is {thing.error}", replaceable=thing.error == "broken")
        thing.opened = None
        if thing.paused is {"SUSPEND": False, "RESUME": True}.get(action):
            return Observation(exists=True, ready=False, retry_after=1.0)
        attributes = {name: thing.properties.get(name) for name in (*IN_PLACE, *FIXED)}
        return Observation(exists=True, attributes=attributes, properties=dict(thing.properties))

    def find(self, token: str) -> str | None:
        """Look a thing up by the token it was asked for with."""
        return next((thing.id for thing in self.things.values() if thing.token == token), None)

    def _stands(self, what: str, thing: Thing) -> None:
        required = () if self.landing else self.required(thing.token)  # they may have changed
        for id_ in sorted(thing.stands_on | set(required)):
            below = self.things.get(id_)
            if id_ in self.lost or thing.late:
                continue
            if below is None:
                self.invalid.append(f"{what} on {id_}, which is not there")
            elif below.opened is not None and not self.landing:
                self.invalid.append(f"{what} on {id_}, whose {below.opened} is open")


class Changeable(ResourceType):
    """Properties `a b c ca` change in place, `!a !b` make another of it."""

    name = "Sim::Changeable"
    calls_out = True
    flight_seconds = 60.0
    properties: ClassVar = {
        **{name: Property("string", "Any text.", update_allowed=True) for name in IN_PLACE},
        **{name: Property("string", "Any text.") for name in FIXED},
        "on": Property("list", "Things it stands on.", update_allowed=True),
        "looks": Property("integer", "Looks each operation takes.", default=0, update_allowed=True),
    }
    attributes: ClassVar = {name: Attribute("As given.") for name in (*IN_PLACE, *FIXED)}

    def __init__(self, provider: Provider) -> None:
        self.provider = provider

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        made: Thing = self.provider.ask("create", ctx, lambda: self.provider.create(ctx, props))
        return Created(made.id)

    def find(self, ctx: Context, token: str) -> str | None:
        result: str | None = self.provider.ask("find", ctx, lambda: self.provider.find(token))
        return result

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        look = partial(self.provider.observe, physical_id, ctx.action)
        observed: Observation = self.provider.ask("observe", ctx, look)
        return observed

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        self.provider.ask("update", ctx, lambda: self.provider.update(ctx, physical_id, props))
        return Created(physical_id)

    def delete(self, ctx: Context, physical_id: str) -> None:
        self.provider.ask("delete", ctx, lambda: self.provider.delete(ctx, physical_id))

    def suspend(self, ctx: Context, physical_id: str) -> None:
        self.provider.ask("suspend", ctx, lambda: self.provider.pause(ctx, physical_id, True))

    def resume(self, ctx: Context, physical_id: str) -> None:
        self.provider.ask("resume", ctx, lambda: self.provider.pause(ctx, physical_id, False))

    def snapshot(self, ctx: Context, physical_id: str) -> Mapping[str, Value]:
        return {"copy": self.provider.ask("snapshot", ctx, lambda: self.provider.copy(ctx, physical_id))}

    def delete_snapshot(self, ctx: Context, kept: Mapping[str, Value]) -> None:
        copy = kept.get("copy", ctx.token)
        self.provider.ask("delete_snapshot", ctx, lambda: self.provider.copies.pop(copy, None))


class Rigid(Changeable):
    """Any change makes another of it."""

    name = "Sim::Rigid"
    properties: ClassVar = {
        name: Property(prop.type, prop.doc, default=prop.default)
        for name, prop in Changeable.properties.items()
    }


class Docked(Rigid):
    """Any change makes another of it, and only one thing at a time has a dock."""

    name = "Sim::Docked"
    properties: ClassVar = {**Rigid.properties, "dock": Property("string", "Its dock.")}

    def release(self, ctx: Context, physical_id: str) -> None:
        self.provider.ask("release", ctx, lambda: self.provider.release(ctx, physical_id))

    def reclaim(self, ctx: Context, physical_id: str, props: Mapping[str, Value]) -> None:
        self.provider.ask("reclaim", ctx, lambda: self.provider.reclaim(ctx, physical_id, props))


def thing(*requires: str, type: str = "Sim::Changeable", **properties: Any) -> dict[str, Any]:
    """A thing as a template has it; `requires` are in words only, `on` hands their ids over."""
    snippet: dict[str, Any] = {"type": type, "properties": properties}
    return snippet | ({"depends_on": list(requires)} if requires else {})
