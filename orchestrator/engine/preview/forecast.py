"""Forecast of an update: the change of each resource, without performing it. Pure.

Resources are taken in the order of a traversal, requirements before dependents, and decided by the same
function as in a check (`engine/check/change.py`). The outputs of a requirement are known as far as possible:
a kept resource has its recorded outputs, a local type computes its new outputs, and every other output may
differ. A change that depends on an unknown value is not `certain`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from orchestrator.engine.check.property_diff import needs_other_type
from orchestrator.engine.preview import texts
from orchestrator.engine.preview.property_forecast import InputForecast, PropertyForecast
from orchestrator.engine.preview.resource_forecast import ForecastState, ResourceForecast
from orchestrator.engine.preview.results import CurrentResource, ForecastResource
from orchestrator.engine.validation.type_resolution import TypeResolver
from orchestrator.errors import Diagnostic
from orchestrator.resources.base import Observation, ResourceType
from orchestrator.schema.translation import Finder
from orchestrator.template.definition import ResourceDefinition
from orchestrator.template.parameters import ParameterValues
from orchestrator.template.template import Template


class Forecast:
    """A simulated update: pass the resources to `stays` and `visit` in order, requirements first."""

    def __init__(
        self,
        template: Template,
        values: ParameterValues,
        kinds: TypeResolver,
        files: Callable[[str], str | None],
        stack_name: str,
        resolve: Finder | None = None,
    ) -> None:
        """Take the desired revision of the stack; `resolve` replaces names in properties by ids."""
        self.template, self.kinds = template, kinds
        self.state = ForecastState(template, values, files, stack_name, resolve)

    @property
    def outputs(self) -> dict[str, InputForecast]:
        """The forecast outputs of the resources so far."""
        return self.state.inputs

    @property
    def properties(self) -> dict[str, PropertyForecast]:
        """The forecast properties of nested resources."""
        return self.state.outlooks

    @property
    def faults(self) -> list[Diagnostic]:
        """The errors for which the update would fail."""
        return self.state.faults

    def add_unvisited(self, current: CurrentResource) -> None:
        """Add a resource that the update does not reach."""
        self.state.inputs[current.name] = InputForecast(current.proxy)

    def visit(
        self,
        name: str,
        current: CurrentResource | None,
        *,
        dirty: bool = True,
        back: bool = False,
        observation: Observation | None = None,
        well: bool | None = None,
        unseen: str = "",
        as_built: bool = False,
    ) -> ForecastResource:
        """Return the forecast of a resource that the update may reach.

        `as_built`: a nested resource whose child is as requested, from the same definition. `dirty`: visited
        even if no requirement changes. `back`: a deposed resource that takes the place of its replacement.
        `observation` is a fresh observation, `well` the health of a failed resource (None: not asked),
        `unseen` why it could not be observed.
        """
        definition = self.template.resources[name]
        type_ = self.kinds.of(definition)
        assert isinstance(type_, ResourceType)
        resource = ResourceForecast(self.state, definition, type_, self.kinds.resolved_name(definition))
        if current is None:
            forecast = resource.added()
        elif (other := resource.type_changed(current)) is not None:
            forecast = other
        elif not (dirty or resource.moved or observation is not None):
            forecast = resource.kept(current)
        else:
            forecast = resource.compared(current, observation, well, as_built=as_built)
        if back and current is not None and forecast.turn != "replaced":
            forecast = resource.restored(forecast)
        if unseen:
            text = f"it could not be observed: {unseen}"
            forecast = replace(forecast, because=texts.joined(forecast.because, text), certain=False)
        return forecast if current is None else self._with_restriction(forecast, definition, current)

    def _with_restriction(
        self, forecast: ForecastResource, definition: ResourceDefinition, current: CurrentResource
    ) -> ForecastResource:
        """Mark a change that the environment forbids (docs/internals/hot-language.md §9.6)."""
        # OS::Heat::None in place of a resource counts as a replacement, too.
        other = needs_other_type(current.resource_type, self.kinds.resolved_name(definition))
        action = "replace" if other else {"updated": "update", "replaced": "replace"}.get(forecast.turn)
        forbidden = action in self.kinds.registry.restricted_actions(forecast.name)
        return replace(forecast, restricted=action) if action and forbidden else forecast
