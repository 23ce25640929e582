"""The forecast of a resource during an update: pure.

The decision is `engine/check/change.py`'s, as in a check. A forecast lacks some values: it decides
once with the properties that are sure to differ, and once more with those that may.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Final

from orchestrator.engine.check.change import (
    NO_NAMES,
    Ask,
    AwaitReady,
    Comparison,
    Decision,
    Desired,
    Evidence,
    Recorded,
    Refuse,
    Replace,
    ReplaceReason,
    Shadow,
    Update,
    decide_change,
)
from orchestrator.engine.check.decide import Keep
from orchestrator.engine.check.property_diff import as_stored, changed_properties, with_drift
from orchestrator.engine.physical_names import physical_name
from orchestrator.engine.preview import texts
from orchestrator.engine.preview.property_forecast import (
    ForecastDefinition,
    InputForecast,
    PropertyForecast,
    forecast_properties,
)
from orchestrator.engine.preview.results import CurrentResource, ForecastResource
from orchestrator.errors import Diagnostic
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.resources.base import NOTHING_TYPE, Observation, ResourceType
from orchestrator.resources.nested_type import NestedType
from orchestrator.resources.verbs.contexts import operation_context
from orchestrator.schema.properties import join
from orchestrator.schema.translation import Finder
from orchestrator.template.definition import ResourceDefinition
from orchestrator.template.function_view import UNKNOWN, ResourceProxy
from orchestrator.template.parameters import MASK, ParameterValues
from orchestrator.template.secret_values import both
from orchestrator.template.template import Template

ELAPSED_SECONDS: Final = 1e9  # an operation this old has passed every waiting time of its type


@dataclass(slots=True)
class ForecastState:
    """The forecast stack so far: outputs of the resources already forecast."""

    template: Template
    values: ParameterValues
    files: Callable[[str], str | None]
    stack_name: str
    resolve: Finder | None = None  # for the types' translation rules
    inputs: dict[str, InputForecast] = field(default_factory=dict)
    outlooks: dict[str, PropertyForecast] = field(default_factory=dict)  # of nested resources
    faults: list[Diagnostic] = field(default_factory=list)  # for which the update would fail


class ResourceForecast:
    """The part of a resource in a forecast."""

    def __init__(
        self, state: ForecastState, definition: ResourceDefinition, type_: ResourceType, type_name: str
    ) -> None:
        """`type_name` is the type's name after the environment's mappings."""
        self.state, self.definition, self.type, self.type_name = state, definition, type_, type_name
        self.name, self.keywords = definition.name, state.template.form.keywords
        self.inputs = {
            name: state.inputs[name] for name in sorted(definition.requires) if name in state.inputs
        }
        self.moved = any(item.moved for item in self.inputs.values())
        self.nested = isinstance(type_, NestedType)

    def added(self) -> ForecastResource:
        outlook = self._evaluate(())
        self._output_new("is new")
        metadata = None if outlook.metadata is UNKNOWN else outlook.metadata
        return ForecastResource(self.name, "added", metadata=MASK if outlook.secret_metadata else metadata)

    def type_changed(self, current: CurrentResource) -> ForecastResource | None:
        """Return the forecast of a resource of another type, None if the type stays."""
        shadowed = self.type_name == NOTHING_TYPE and self.definition.type != NOTHING_TYPE
        desired = Desired(self.type_name, shadowed and current.op is None)
        decision = decide_change(Comparison(_recorded(current, current.properties), desired, self.type))
        match decision:
            case Shadow():
                return self._shadowed(current)
            case Replace():
                if self.nested:
                    self._evaluate(())
                return self._replaced(
                    decision.text(recorded=current.type, desired=self.definition.type), certain=True
                )
        return None

    def kept(
        self,
        current: CurrentResource,
        because: str = "",
        *,
        certain: bool = True,
        observed: Observation | None = None,
    ) -> ForecastResource:
        pending = {"CREATE": "is being created", "UPDATE": "is being updated"}.get(current.op or "")
        if pending:
            new = current.physical_id is None
            output = InputForecast(current.proxy, moved=True, new_id=new, unsure=True, why=pending)
        elif observed is not None and observed.ready:
            output = self._output(current, observed, "was changed outside the stack")
        else:
            output = InputForecast(current.proxy)
        self.state.inputs[self.name] = output
        return ForecastResource(self.name, "unchanged", because, certain)

    def restored(self, forecast: ForecastResource) -> ForecastResource:
        """Return the forecast of a deposed resource that takes the place of its replacement."""
        self.state.inputs[self.name] = replace(self.state.inputs[self.name], moved=True, why="is replaced")
        because = texts.joined("the previous resource is restored", forecast.because)
        return replace(forecast, turn="replaced", because=because)

    def compared(
        self,
        current: CurrentResource,
        observed: Observation | None,
        healthy: bool | None,
        *,
        as_built: bool = False,
    ) -> ForecastResource:
        """Return the forecast of an existing resource of the desired type.

        `as_built`: a nested resource whose child is as requested, from the same definition.
        """
        outlook = self._evaluate(current.properties)
        if outlook.external_id is UNKNOWN:
            return self.kept(current, certain=False)
        case = self._comparison(current, outlook, Evidence(healthy, observed, feasible=True))
        decision = decide_change(case)
        match decision:
            case Refuse():
                return self._refused(current, decision)
            case Keep() if outlook.external_id is not None:
                return self.kept(current)
            case Ask() | Replace(because=ReplaceReason.FAILED | ReplaceReason.UNHEALTHY):
                return self._failed(current, outlook, certain=not isinstance(decision, Ask))
            case AwaitReady():
                return self.kept(current, "it failed earlier and is not ready yet", certain=False)
            case Replace(because=ReplaceReason.MISSING | ReplaceReason.BROKEN):
                error = observed.error if observed is not None else ""
                return self._replaced(decision.text(error=error), certain=True)
            case Update() if current.status == "FAILED" and not self.nested:
                if current.action == "UPDATE":
                    return self._updated_again(current, outlook, decision.changed)
        return self._with_unknown_values(current, outlook, case, decision, as_built=as_built)

    def _comparison(
        self, current: CurrentResource, outlook: PropertyForecast, evidence: Evidence
    ) -> Comparison:
        """Return the input of the decision: a value that is not known yet counts as the recorded one."""
        before, after = current.properties, as_stored(outlook.properties)
        if evidence.observation is not None:
            before = with_drift(self.type, before, after, evidence.observation)
        after |= {n: before[n] for n in outlook.sure | outlook.maybe if n in before and n not in after}
        metadata = current.metadata if outlook.metadata is UNKNOWN else outlook.metadata
        external = None if outlook.external_id is None else str(outlook.external_id)
        return Comparison(
            _recorded(current, before),
            Desired(current.resource_type, False, after, metadata, external, outlook.sure),
            self.type,
            evidence,
            nested=self.nested,
        )

    def _with_unknown_values(
        self,
        current: CurrentResource,
        outlook: PropertyForecast,
        case: Comparison,
        decision: Decision,
        *,
        as_built: bool,
    ) -> ForecastResource:
        """Return the greater change of two: the certain change, and the change if every
        unknown value differs."""
        result, certain = decision, True
        if outlook.maybe:
            undetermined = outlook.sure | outlook.maybe
            possible = decide_change(case._replace(desired=case.desired._replace(undetermined=undetermined)))
            if isinstance(possible, Refuse):
                possible = Replace(ReplaceReason.FIXED_PROPERTIES, possible.changed)
            if _weight(possible) > _weight(decision):
                result, certain = possible, False
        if outlook.metadata is UNKNOWN and isinstance(result, Keep):
            result, certain = Update(), False
        after = case.desired.properties or {}
        if not isinstance(result, Update | Replace):
            if self.nested and not as_built:
                return self._nested_update(current, after, outlook)
            healed = current.status == "FAILED" and not self.nested
            because = "it failed earlier and is healthy now" if healed else ""
            return self.kept(current, because, observed=case.evidence.observation)
        before = case.recorded.properties
        shown = self._shown(current, before, after, result.changed, outlook)
        drifted = sorted(n for n in result.changed if before.get(n) != current.properties.get(n))
        because = texts.change_reason(
            result, self.definition.body, self.type, self.inputs, certain=certain, maybe=bool(outlook.maybe)
        )
        if drifted:
            because = texts.joined(because, texts.drifted(drifted))
        if isinstance(result, Replace):
            return self._replaced(because, certain=certain, **shown)
        self._output_changed(current, after, result.changed, outlook)
        return ForecastResource(self.name, "updated", because, certain, **shown)

    def _replaced(self, because: str, *, certain: bool, **shown: Any) -> ForecastResource:
        self._output_new("is replaced" if certain else "may be replaced", certain)
        return ForecastResource(self.name, "replaced", because, certain, **shown)

    def _shadowed(self, current: CurrentResource) -> ForecastResource:
        proxy = replace(current.proxy, attributes={}, reference_id=current.physical_id)
        self.state.inputs[self.name] = InputForecast(proxy, moved=True, why=f"is mapped to {NOTHING_TYPE}")
        return ForecastResource(self.name, "unchanged", f"it is mapped to {NOTHING_TYPE}")

    def _nested_update(
        self, current: CurrentResource, after: JsonMapping, outlook: PropertyForecast
    ) -> ForecastResource:
        """Return the update of a nested stack, which computes its own changes."""
        because = "the inputs of its stack change, or its stack was changed directly"
        if current.status == "FAILED":
            because = f"it has failed: {current.status_reason}" if current.status_reason else "it has failed"
        elif current.op is not None:
            because = "an operation of its stack is in progress"
        self._output_changed(current, after, NO_NAMES, outlook)
        return ForecastResource(self.name, "updated", because, current.op is None)

    def _failed(
        self, current: CurrentResource, outlook: PropertyForecast, *, certain: bool
    ) -> ForecastResource:
        """Return the replacement of a failed resource; uncertain where its health is not known, and where an
        adoption is tried again.
        """
        unhealthy = current.action == "CHECK"
        because = (ReplaceReason.UNHEALTHY if unhealthy else ReplaceReason.FAILED).value
        because += f": {current.status_reason}" if current.status_reason else ""
        certain = certain and (current.action != "ADOPT" or current.physical_id is None)
        after = as_stored(outlook.properties)
        comparable = (after.keys() | current.properties.keys()) - (outlook.sure | outlook.maybe)
        changed = comparable & changed_properties(self.type, current.properties, after)
        shown = self._shown(current, current.properties, after, changed, outlook)
        return self._replaced(because, certain=certain, **shown)

    def _updated_again(
        self, current: CurrentResource, outlook: PropertyForecast, sent: frozenset[str]
    ) -> ForecastResource:
        """Return the update of a resource whose last update failed; its progress is not known."""
        after = as_stored(outlook.properties)
        differ = sent & after.keys() & changed_properties(self.type, current.properties, after)
        shown = self._shown(current, current.properties, after, differ, outlook)
        self._output_changed(current, after, sent & after.keys(), outlook)
        return ForecastResource(self.name, "updated", "its last update failed", **shown)

    def _refused(self, current: CurrentResource, refuse: Refuse) -> ForecastResource:
        place = f"{self.keywords.resources}.{self.name}"
        if refuse.properties:
            path = join(place, self.keywords.properties)
        else:
            path = f"{place}.{self.keywords.external_id}"
        self.state.faults.append(Diagnostic("not-supported", refuse.message, path, heat_type="NotSupported"))
        return self.kept(current)

    def _evaluate(self, before: Iterable[str]) -> PropertyForecast:
        """Return the forecast properties; `before` are the names of the recorded properties."""
        state = self.state
        view = ForecastDefinition(state.template, state.values, state.files, self.inputs)
        outlook = forecast_properties(self.definition, self.type, view, before, state.resolve)
        if self.nested:
            state.outlooks[self.name] = outlook
        state.faults += outlook.faults
        return outlook

    def _shown(
        self,
        current: CurrentResource,
        before: JsonMapping,
        after: JsonMapping,
        changed: Iterable[str],
        outlook: PropertyForecast,
    ) -> JsonObject:
        """Return the changed properties with secrets masked, and the names of unknown new values."""
        unknown = outlook.sure | outlook.maybe

        def old(name: str) -> Any:
            shown = current.shown(before.get(name)) if name in before else None
            return outlook.shown(name, shown, after.get(name))

        def new(name: str) -> Any:
            if name in unknown or name not in after:
                return None
            return outlook.shown(name, after[name])

        names = sorted(changed)
        return {
            "changed": {name: (old(name), new(name)) for name in names},
            "unknown": tuple(name for name in names if name in unknown),
        }

    def _output_new(self, why: str, certain: bool = True) -> None:
        created = ResourceProxy.uncreated(self.name)
        self.state.inputs[self.name] = InputForecast(created, True, True, True, certain, why)

    def _output_changed(
        self,
        current: CurrentResource,
        after: JsonMapping,
        changed: frozenset[str],
        outlook: PropertyForecast,
    ) -> None:
        """Record the outputs after a change: exact for a local type, which can be run without effects."""
        observed = None
        if not self.type.calls_out and current.op is None and not outlook.sure | outlook.maybe:
            limit = self.type.physical_name_limit
            name = physical_name(self.state.stack_name, self.name, current.uuid, limit)
            observed = _simulated(self.type, current, name, after, changed)
        if observed is None:
            output = InputForecast(current.proxy, moved=True, unsure=True, why="is changed")
        else:
            output = self._output(current, observed, "is changed", outlook)
        self.state.inputs[self.name] = output

    def _output(
        self, current: CurrentResource, observed: Observation, why: str, new: PropertyForecast | None = None
    ) -> InputForecast:
        """Return the outputs of a resource that will be as `observed`; recorded live attributes stay."""
        reference, live = observed.reference_id or current.physical_id, self.type.live_attributes
        attributes = {name: value for name, value in observed.attributes.items() if name not in live}
        attributes |= {name: value for name, value in current.attributes.items() if name in live}
        attributes = as_stored(attributes)
        proxy = replace(current.proxy, reference_id=reference, attributes=attributes)
        if new is not None and new.secret:
            proxy = replace(proxy, secret=True, secrets=both(proxy.secrets, new.secrets))
        moved = (reference, attributes) != (current.proxy.reference_id, current.attributes)
        return InputForecast(proxy, moved, why=why)


def _recorded(current: CurrentResource, properties: JsonMapping) -> Recorded:
    return Recorded(
        current.name,
        current.type,
        current.resource_type,
        current.action,
        current.status,
        current.physical_id,
        properties,
        current.metadata,
        current.marked_unhealthy,
    )


def _weight(decision: Decision) -> int:
    match decision:
        case Replace():
            return 2
        case Update():
            return 1
    return 0


def _simulated(
    type_: ResourceType,
    current: CurrentResource,
    name: str,
    after: JsonMapping,
    changed: frozenset[str],
) -> Observation | None:
    """Return the result of an update of a local type, None where the type cannot tell."""
    physical_id = current.physical_id or ""
    ctx = operation_context(
        current.name,
        name,
        f"{current.uuid}-preview",
        "UPDATE",
        elapsed_seconds=ELAPSED_SECONDS,
        properties=after,
        data=current.data,
    )
    try:
        made = type_.update(ctx, physical_id, after, changed) if changed else None
        data = made.data if made is not None and made.data else current.data
        observed = type_.observe(replace(ctx, data=data), physical_id)
    except Exception:  # the update itself will report it
        return None
    same_id = made is None or made.physical_id == physical_id
    usable = observed.exists and observed.ready and not observed.error
    return observed if usable and same_id else None
