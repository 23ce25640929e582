"""What an update would do to each resource, without doing it: pure.

Resources are gone through with requirements before their dependents, as a traversal does, and judged by the
same functions. A traversal knows what each requirement became; here that is known as far as it can be: what
is kept hands on what it has, a type that calls nobody is asked what it would become, and of everything else
is only said that it may be different. What cannot be known makes a change one that is not `certain`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from orchestrator.engine.check.property_diff import as_stored, needs_other_type, property_change, with_drift
from orchestrator.engine.physical_names import physical_name
from orchestrator.engine.preview.property_forecast import (
    ForecastDefinition,
    InputForecast,
    PropertyForecast,
    forecast_properties,
    mentioned,
)
from orchestrator.engine.validation.type_resolution import TypeResolver
from orchestrator.errors import Diagnostic
from orchestrator.resources.base import NOTHING_TYPE, Context, Observation, ResourceType
from orchestrator.resources.nested_type import NestedType
from orchestrator.schema.properties import immutable_message, join
from orchestrator.template.definition import ResourceDefinition
from orchestrator.template.function_view import UNKNOWN, ResourceProxy
from orchestrator.template.parameters import MASK, ParameterValues
from orchestrator.template.template import Template

Turn = Literal["unchanged", "updated", "replaced", "added", "deleted"]

AGES: Final = 1e9  # seconds, after which nothing that is waited for by the clock is waited for
NAMED: Final = 3  # how many are named where there may be thousands
WEIGHT: Final[Mapping[str, int]] = {"keep": 0, "update": 1, "replace": 2}


@dataclass(frozen=True, slots=True)
class CurrentResource:
    """A resource as it is, its values in the open; `secret` when they must not be shown."""

    id: int
    uuid: str
    name: str
    type: str
    kind: str
    action: str
    status: str
    status_reason: str
    op: str | None
    physical_id: str | None
    reference_id: str | None
    properties: Mapping[str, Any]
    attributes: Mapping[str, Any]
    data: Mapping[str, Any]
    metadata: Mapping[str, Any] | None
    secret: bool

    @property
    def proxy(self) -> ResourceProxy:
        """What functions see of it."""
        reference = self.reference_id or self.physical_id
        return ResourceProxy(self.name, reference, self.attributes, self.action, self.status, self.secret)


@dataclass(frozen=True, slots=True)
class ForecastResource:
    """What becomes of one resource.

    `changed` has its properties before and after, masked where secret; of `unknown` the value after is not
    known yet. Without `certain` it depends on such values.
    """

    name: str
    turn: Turn
    because: str = ""
    certain: bool = True
    changed: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()
    metadata: Any = None  # of one that is added, as far as it is known
    restricted: str = ""  # the action that the environment forbids, for which the update would fail


class Forecast:
    """An update in thought: `stays` and `visit` take the resources in order, requirements first."""

    def __init__(
        self,
        template: Template,
        values: ParameterValues,
        kinds: TypeResolver,
        files: Callable[[str], str | None],
        stack_name: str,
    ) -> None:
        """Take what the stack is to be."""
        self.template, self.values, self.kinds, self.files = template, values, kinds, files
        self.stack_name = stack_name
        self.handed: dict[str, InputForecast] = {}
        self.outlooks: dict[str, PropertyForecast] = {}  # of those that stand for stacks of their own
        self.faults: list[Diagnostic] = []  # for which the update would fail

    def stays(self, there: CurrentResource) -> None:
        """Take in a resource that nothing reaches."""
        self.handed[there.name] = InputForecast(there.proxy)

    def visit(
        self,
        name: str,
        there: CurrentResource | None,
        *,
        dirty: bool = True,
        back: bool = False,
        seen: Observation | None = None,
        well: bool | None = None,
        unseen: str = "",
        as_built: bool = False,
    ) -> ForecastResource:
        """Return what becomes of a resource that the update may reach.

        `as_built`: it was left as it was asked to be, from the same definition, and nobody looks further.
        `dirty`: it is visited whatever its requirements hand on. `back`: it takes the place of a newer one.
        `seen` is what was found when it was looked at, `well` whether it is so although it has failed (None:
        nobody asked), `unseen` why it could not be looked at.
        """
        definition = self.template.resources[name]
        kind = self.kinds.of(definition)
        assert isinstance(kind, ResourceType)
        visit = _Visit(self, definition, kind)
        if there is None:
            found = visit.added()
        elif there.kind != self.kinds.resolved_name(definition) and self._stands_in(definition, there):
            found = visit.stood_in_for(there)
        elif needs_other_type(there.kind, self.kinds.resolved_name(definition)):
            if visit.nested:
                visit.look_ahead(())
            found = visit.replaced(f"its type changes from {there.type} to {definition.type}")
        elif not (dirty or visit.moved or seen is not None):
            found = visit.kept(there)
        else:
            found = visit.revised(there, seen, well, as_built=as_built)
        if back and there is not None and found.turn != "replaced":
            found = visit.taken_back(found)
        if unseen:
            text = f"it could not be looked at: {unseen}"
            found = replace(found, because=_joined(found.because, text), certain=False)
        return found if there is None else self._with_restriction(found, definition, there)

    def _with_restriction(
        self, found: ForecastResource, definition: ResourceDefinition, there: CurrentResource
    ) -> ForecastResource:
        """Say of a change that the environment forbids it (docs/internals/hot-language.md §9.6)."""
        # Something that stands in for it counts as a replacement, too.
        other = needs_other_type(there.kind, self.kinds.resolved_name(definition))
        action = "replace" if other else {"updated": "update", "replaced": "replace"}.get(found.turn)
        forbidden = action in self.kinds.registry.restricted_actions(found.name)
        return replace(found, restricted=action) if action and forbidden else found

    def _stands_in(self, definition: ResourceDefinition, there: CurrentResource) -> bool:
        nothing = definition.type != NOTHING_TYPE and self.kinds.resolved_name(definition) == NOTHING_TYPE
        return nothing and there.physical_id is not None and there.op is None


class _Visit:
    """One resource's part of a forecast."""

    def __init__(self, forecast: Forecast, definition: ResourceDefinition, kind: ResourceType) -> None:
        self.forecast, self.definition, self.kind = forecast, definition, kind
        self.name, self.words = definition.name, forecast.template.form.words
        handed = forecast.handed
        self.inputs = {name: handed[name] for name in sorted(definition.requires) if name in handed}
        self.moved = any(one.moved for one in self.inputs.values())
        self.nested = isinstance(kind, NestedType)

    def added(self) -> ForecastResource:
        outlook = self.look_ahead(())
        self._hand_on_new("is new")
        known = None if outlook.metadata is UNKNOWN else outlook.metadata
        return ForecastResource(self.name, "added", metadata=MASK if outlook.secret_metadata else known)

    def replaced(self, because: str, certain: bool = True, **more: Any) -> ForecastResource:
        self._hand_on_new("is replaced" if certain else "may be replaced", certain)
        return ForecastResource(self.name, "replaced", because, certain, **more)

    def kept(
        self,
        there: CurrentResource,
        because: str = "",
        *,
        certain: bool = True,
        seen: Observation | None = None,
    ) -> ForecastResource:
        waited_for = {"CREATE": "is just being created", "UPDATE": "is just being changed"}.get(
            there.op or ""
        )
        if waited_for:
            new = there.physical_id is None
            known = InputForecast(there.proxy, moved=True, new_id=new, unsure=True, why=waited_for)
        elif seen is not None and seen.ready:
            known = _handed(there, seen, "is not as it was", there.secret)
        else:
            known = InputForecast(there.proxy)
        self.forecast.handed[self.name] = known
        return ForecastResource(self.name, "unchanged", because, certain)

    def stood_in_for(self, there: CurrentResource) -> ForecastResource:
        proxy = replace(there.proxy, attributes={}, reference_id=there.physical_id)
        self.forecast.handed[self.name] = InputForecast(proxy, moved=True, why="is stood in for")
        return ForecastResource(self.name, "unchanged", f"{NOTHING_TYPE} stands in for it")

    def taken_back(self, found: ForecastResource) -> ForecastResource:
        handed = self.forecast.handed[self.name]
        self.forecast.handed[self.name] = replace(handed, moved=True, why="is replaced")
        because = _joined("the one from before is taken back", found.because)
        return replace(found, turn="replaced", because=because)

    def revised(
        self, there: CurrentResource, seen: Observation | None, well: bool | None, *, as_built: bool = False
    ) -> ForecastResource:
        outlook = self.look_ahead(there.properties)
        if outlook.external_id is not None:
            return self._external(there, outlook)
        mended = ""
        if there.status == "FAILED" and not self.nested:
            if not well or there.physical_id is None:
                return self._failed(there, outlook, well)
            if there.action == "UPDATE":
                return self._changed_again(there, outlook)
            mended = "it has failed and is well by now"
        if seen is not None and (not seen.exists or seen.error):
            return self.replaced(f"it is broken: {seen.error}" if seen.exists else "it is gone")
        before, after = there.properties, as_stored(outlook.properties)
        if seen is not None:
            before = with_drift(self.kind, before, after, seen)
        after |= {n: before[n] for n in outlook.sure | outlook.maybe if n in before and n not in after}
        metadata = there.metadata if outlook.metadata is UNKNOWN else outlook.metadata
        sure = property_change(self.kind, before, after, there.metadata, metadata, outlook.sure)
        if sure.immutable:
            message = immutable_message(sure.immutable, self.name, there.type)
            self._fault(message, join(f"{self.words.resources}.{self.name}", self.words.properties))
            return self.kept(there)
        found, certain = sure, True
        if outlook.maybe:
            may = property_change(
                self.kind, before, after, there.metadata, metadata, outlook.sure | outlook.maybe
            )
            found = max(sure, may, key=lambda one: WEIGHT[one.change])
            certain = found.change == sure.change
        if outlook.metadata is UNKNOWN and found.change == "keep":
            found, certain = replace(found, change="update"), False
        if found.change == "keep" and self.nested and not as_built:
            return self._gone_through(there, after, outlook)
        if found.change == "keep":
            return self.kept(there, mended, seen=seen)
        shown = self._shown(there, before, after, found.changed, outlook)
        drifted = sorted(name for name in found.changed if before.get(name) != there.properties.get(name))
        because = self._why(found.change, found.changed, certain, outlook)
        if drifted:
            because = _joined(because, f"{_named(drifted)} {_is(drifted)} not as it was made")
        if found.change == "replace":
            return self.replaced(because, certain=certain, **shown)
        self._hand_on_changed(there, after, found.changed, outlook)
        return ForecastResource(self.name, "updated", because, certain, **shown)

    def _gone_through(
        self, there: CurrentResource, after: Mapping[str, Any], outlook: PropertyForecast
    ) -> ForecastResource:
        """Return the update of a stack of its own, which finds out by itself what there is to do."""
        because = "what its stack is made with changes, or others have changed it"
        if there.status == "FAILED":
            because = f"it has failed: {there.status_reason}" if there.status_reason else "it has failed"
        elif there.op is not None:
            because = "its stack is at work"
        self._hand_on_changed(there, after, frozenset(), outlook)
        return ForecastResource(self.name, "updated", because, there.op is None)

    def _failed(
        self, there: CurrentResource, outlook: PropertyForecast, well: bool | None
    ) -> ForecastResource:
        said = f": {there.status_reason}" if there.status_reason else ""
        because = f"it is unhealthy{said}" if there.action == "CHECK" else f"it has failed{said}"
        may_be_well = well is None and there.physical_id is not None
        never_asked = type(self.kind).survives_failure is ResourceType.survives_failure
        certain = not may_be_well or (never_asked and there.action != "ADOPT")  # that is tried again
        after = as_stored(outlook.properties)
        unknown = outlook.sure | outlook.maybe
        known = {name for name in after.keys() | there.properties.keys() if name not in unknown}
        changed = {name for name in known if there.properties.get(name) != after.get(name)}
        shown = self._shown(there, there.properties, after, changed, outlook)
        return self.replaced(because, certain, **shown)

    def _changed_again(self, there: CurrentResource, outlook: PropertyForecast) -> ForecastResource:
        """Return the change of one whose last change failed: how far that came is not known."""
        after, declared = as_stored(outlook.properties), self.kind.properties
        movable = frozenset(name for name in after if name in declared and declared[name].update_allowed)
        differ = {name for name in movable if there.properties.get(name) != after[name]}
        shown = self._shown(there, there.properties, after, differ, outlook)
        self._hand_on_changed(there, after, movable, outlook)
        return ForecastResource(self.name, "updated", "its last change has failed", **shown)

    def _external(self, there: CurrentResource, outlook: PropertyForecast) -> ForecastResource:
        if outlook.external_id is UNKNOWN:
            return self.kept(there, certain=False)
        if outlook.external_id != there.physical_id:
            message = f"Update to property external_id of {self.name} ({there.type}) is not supported."
            self._fault(message, f"{self.words.resources}.{self.name}.{self.words.external_id}")
        return self.kept(there)

    def look_ahead(self, before: Iterable[str]) -> PropertyForecast:
        """Return what it will be made from; `before` are the properties that it has."""
        forecast = self.forecast
        view = ForecastDefinition(forecast.template, forecast.values, forecast.files, self.inputs)
        outlook = forecast_properties(self.definition, self.kind, view, before)
        if self.nested:
            forecast.outlooks[self.name] = outlook
        forecast.faults += outlook.faults
        return outlook

    def _fault(self, message: str, path: str) -> None:
        self.forecast.faults.append(Diagnostic("not-supported", message, path, heat_type="NotSupported"))

    def _shown(
        self,
        there: CurrentResource,
        before: Mapping[str, Any],
        after: Mapping[str, Any],
        changed: Iterable[str],
        outlook: PropertyForecast,
    ) -> dict[str, Any]:
        """Return the properties that differ as people may see them, and which new values are not known."""
        unknown = outlook.sure | outlook.maybe

        def old(name: str) -> Any:
            return MASK if there.secret and name in before else before.get(name)

        def new(name: str) -> Any:
            if name in unknown or name not in after:
                return None
            return MASK if name in outlook.secret else after[name]

        names = sorted(changed)
        return {
            "changed": {name: (old(name), new(name)) for name in names},
            "unknown": tuple(name for name in names if name in unknown),
        }

    def _why(self, change: str, changed: frozenset[str], certain: bool, outlook: PropertyForecast) -> str:
        declared, causes = self.kind.properties, self._causes(changed, outlook)
        names = _named(sorted(changed))
        changes = f"{'changes' if len(changed) == 1 else 'change'}" if certain else "may change"
        if change == "replace":
            fixed = sorted(n for n in changed if n not in declared or not declared[n].update_allowed)
            if not fixed:
                return f"its type has it replaced when {names} {changes}{causes}"
            if certain:
                return f"{_named(fixed)} cannot be changed in place{causes}"
            return f"{_named(fixed)} may change, and not in place{causes}"
        return (
            f"{names} {changes}{causes}" if changed else f"its metadata {'changes' if certain else changes}"
        )

    def _causes(self, changed: frozenset[str], outlook: PropertyForecast) -> str:
        """Return which requirements let it change, if any does."""
        moved = {name: one for name, one in self.inputs.items() if one.moved}
        if not moved:
            return ""
        body = self.definition.body
        properties = body.get("properties")
        written = [properties.get(n) for n in changed] if isinstance(properties, Mapping) else []
        asked = mentioned(written if changed else body.get("metadata"), moved)
        if isinstance(properties, Mapping) and not asked and outlook.maybe:
            asked = mentioned(properties, moved)  # one function gives them all
        if not asked:
            return ""
        told = [f"{name} {moved[name].why}" for name in asked[:NAMED]]
        more = [f"{len(asked) - NAMED} more"] if len(asked) > NAMED else []
        return f" ({', '.join([*told, *more])})"

    def _hand_on_new(self, why: str, certain: bool = True) -> None:
        made = ResourceProxy(self.name, None, {}, "INIT", "COMPLETE")
        self.forecast.handed[self.name] = InputForecast(made, True, True, True, certain, why)

    def _hand_on_changed(
        self,
        there: CurrentResource,
        after: Mapping[str, Any],
        changed: frozenset[str],
        outlook: PropertyForecast,
    ) -> None:
        """Hand on what it will have: exactly, of a type that can be asked without touching anything."""
        seen = None
        if not self.kind.calls_out and there.op is None and not outlook.sure | outlook.maybe:
            name = physical_name(self.forecast.stack_name, self.name, there.uuid)
            seen = _tried(self.kind, there, name, after, changed)
        if seen is None:
            handed = InputForecast(there.proxy, moved=True, unsure=True, why="is changed")
        else:
            handed = _handed(there, seen, "is changed", there.secret or bool(outlook.secret))
        self.forecast.handed[self.name] = handed


def _handed(there: CurrentResource, seen: Observation, why: str, secret: bool) -> InputForecast:
    """Return what a resource hands on that will be as it is `seen`."""
    reference, attributes = seen.reference_id or there.physical_id, as_stored(seen.attributes)
    proxy = replace(there.proxy, reference_id=reference, attributes=attributes, secret=secret)
    moved = (reference, attributes) != (there.proxy.reference_id, there.attributes)
    return InputForecast(proxy, moved, why=why)


def _tried(
    kind: ResourceType, there: CurrentResource, name: str, after: Mapping[str, Any], changed: frozenset[str]
) -> Observation | None:
    """Return what a type that touches nothing but our own row would make of a change, if it can say."""
    physical_id = there.physical_id or ""
    ctx = Context(there.name, name, f"{there.uuid}-preview", "UPDATE", AGES, after, there.data)
    try:
        made = kind.update(ctx, physical_id, after, changed) if changed else None
        data = made.data if made is not None and made.data else there.data
        seen = kind.observe(replace(ctx, data=data), physical_id)
    except Exception:  # whatever it is, the update will tell
        return None
    if (
        not seen.exists
        or not seen.ready
        or seen.error
        or (made is not None and made.physical_id != physical_id)
    ):
        return None
    return seen


def _joined(*texts: str) -> str:
    return "; ".join(text for text in texts if text)


def _named(names: Sequence[str]) -> str:
    shown = ", ".join(names[:NAMED])
    return f"{shown} and {len(names) - NAMED} more" if len(names) > NAMED else shown


def _is(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"
