"""Preview an update of a single stack.

The stack is compared with its desired state as a plan does, and each resource that the update may reach is
forecast as its check would decide (`engine/preview/forecast.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from orchestrator.engine.check.decide import RETAINED
from orchestrator.engine.plan_changes import Changes, Row, plan_changes
from orchestrator.engine.preview.forecast import Forecast
from orchestrator.engine.preview.property_forecast import PropertyForecast
from orchestrator.engine.preview.results import CurrentResource, ForecastResource
from orchestrator.engine.validation.type_resolution import TypeResolver
from orchestrator.errors import Diagnostic, InvalidTemplate, LimitExceeded
from orchestrator.graph.build import build
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.lookups.finder import RecentFinder
from orchestrator.operations.context import OperationContext
from orchestrator.operations.keystone.delegated_credentials import cloud_of_caller
from orchestrator.operations.planning.definitions import PlannedDefinitions
from orchestrator.operations.preview.live_observation import LiveObservation, observe_all
from orchestrator.operations.resource_context.operation import with_provider_access
from orchestrator.operations.resource_context.state import recorded_secrets
from orchestrator.operations.size_budget import charge
from orchestrator.operations.software.type_store import DeploymentStore
from orchestrator.resources.base import ResourceType
from orchestrator.security.encryption import Cipher
from orchestrator.store.planning import bulk_writer, preview_reads
from orchestrator.store.planning.preview_reads import Db, StoredProperties
from orchestrator.store.stacks.stacks import StackRow
from orchestrator.template.functions.time_budget import time_budget
from orchestrator.template.parameters import ParameterValues
from orchestrator.template.template import Template

MAX_PREVIEW_OBSERVATIONS: Final = 500
SLICE: Final = 1_000  # resources whose values are in memory at a time
EXPRESSIONS_SECONDS: Final = 20.0  # time budget for all expressions of a forecast
NOT_LISTED: Final = "its deletion policy keeps the physical resource"


@dataclass(frozen=True, slots=True)
class ResourceChange:
    """A resource that an update would change, or that has a remark."""

    expected: ForecastResource
    type: str
    row_id: int | None  # of the current resource
    required_by: Sequence[str] = ()
    description: str = ""
    attributes: Sequence[str] = ()  # names


@dataclass(frozen=True, slots=True)
class UpdatePreview:
    """The effect of an update: `items` by kind of change; resources in `unchanged` have no remarks.

    `stacks` lists resources with child stacks: their content is previewed in any case.
    """

    unchanged: Collection[str]
    items: Mapping[str, Sequence[ResourceChange]]
    stack: StackRow | None = None  # None: it would be created
    name: str = ""  # of the stack
    parent: str | None = None  # the resource that a nested stack belongs to
    nested: Sequence[UpdatePreview] = ()
    stacks: Collection[str] = frozenset()
    warnings: Sequence[JsonObject] = ()  # about the request


@dataclass(frozen=True, slots=True)
class DesiredStack:
    """The desired state of a stack. For a nested stack (`within`), faults are reported together with those of
    other stacks.
    """

    template: Template
    values: ParameterValues
    kinds: TypeResolver
    hashes: Mapping[str, str]  # of the files
    converge: bool
    within: bool = False


class Preview:
    """The preview of a single stack."""

    def __init__(self, context: OperationContext, stack: StackRow, intent: DesiredStack) -> None:
        """Compare the stack with its desired state."""
        self.context, self.stack, self.intent = context, stack, intent
        self.template, self.values, self.kinds = intent.template, intent.values, intent.kinds
        planned = PlannedDefinitions(
            self.template, self.values, self.kinds, intent.hashes, nested=intent.within
        )
        self.desired = planned.desired
        self.outlooks: Mapping[str, PropertyForecast] = {}  # of nested resources
        self.chosen: Mapping[str, Row] = {}
        self.expected: Mapping[str, ForecastResource] = {}
        self.faults: Sequence[Diagnostic] = ()  # of a nested stack

    def run(self) -> UpdatePreview:
        """Return the change of each of its resources.

        Raises:
            InvalidTemplate: with every fault for which the update would fail.
            LimitExceeded: it would have to observe too many resources for a response.
        """
        observation = self._observe() if self.intent.converge else None
        with preview_reads.consistent_snapshot(self.context.database) as db:
            rows = bulk_writer.rows(db, self.stack.id)
            changes = plan_changes(rows, self.desired)
            if observation is not None:
                changes.visited = list(self.desired)
                nested = (
                    name
                    for name, definition in self.template.resources.items()
                    if self.kinds.is_nested(definition)
                )
                changes.dirty.update(nested)
            expected = self._forecast(db, changes, observation or LiveObservation())
            deleted = self._deleted(db, rows, changes)
        self.chosen, self.expected = changes.current, expected
        return self._preview(rows, changes, expected, deleted)

    def _observe(self) -> LiveObservation:
        """Observe all remaining resources that can be observed; no transaction is open during provider calls.

        Raises:
            LimitExceeded: there are too many for a response.
        """
        with preview_reads.consistent_snapshot(self.context.database) as db:
            chosen = plan_changes(bulk_writer.rows(db, self.stack.id), self.desired).current
            kinds = {
                row.id: resource_type
                for name, row in chosen.items()
                if (resource_type := self._looked_at(name, row))
            }
            if len(kinds) > MAX_PREVIEW_OBSERVATIONS:
                raise LimitExceeded(
                    f"A preview with 'converge' would observe {len(kinds)} resources, more than "
                    f"{MAX_PREVIEW_OBSERVATIONS}. "
                    "Leave out 'converge', or check the stack first."
                )
            things = self._current_resources(db, kinds)
        looked_at = [(kinds[id_], current) for id_, current in things.items()]
        return observe_all(
            self.stack.name,
            looked_at,
            partial(DeploymentStore.at, self.context, self.stack),
            prepare=partial(
                with_provider_access,
                settings=self.context.settings,
                project_id=self.stack.project_id,
                cloud=cloud_of_caller(self.context.settings, self.context.caller),
            ),
        )

    def _looked_at(self, name: str, row: Row) -> ResourceType | None:
        """Return the type of a resource that can be observed: it exists, and no operation is in progress."""
        resource_type = self.kinds.of(self.template.resources[name])
        if not isinstance(resource_type, ResourceType) or not resource_type.calls_out:
            return None
        made = (
            row.action != "INIT" and row.op is None and row.resource_type == self.desired[name].resource_type
        )
        return resource_type if made else None

    @time_budget(EXPRESSIONS_SECONDS)
    def _forecast(
        self, db: Db, changes: Changes, observation: LiveObservation
    ) -> dict[str, ForecastResource]:
        """Return the change of each resource that the update may reach.

        Raises:
            InvalidTemplate: with every fault for which it would fail.
        """
        files = self.kinds.files.get
        settings = self.context.settings
        resolve = RecentFinder(self.context.caller.project_id, settings.region_name)
        forecast = Forecast(self.template, self.values, self.kinds, files, self.stack.name, resolve)
        self.outlooks = forecast.properties
        newer = {replacement for replacement in changes.deposed_by.values() if replacement is not None}
        visited, forecasts = set(changes.visited), {}
        for names in self._in_order(changes.visited):
            near = {required for name in names for required in self.template.resources[name].requires}
            neighbours = [
                required for required in near if required not in visited and required not in forecast.outputs
            ]
            rows = [
                row
                for name in (*names, *neighbours)
                if (row := changes.current.get(name)) and not row.never_created
            ]
            current = {
                required.name: required
                for required in self._current_resources(db, [row.id for row in rows]).values()
            }
            for name in neighbours:
                if name in current:
                    forecast.add_unvisited(current[name])
            for name in names:
                here = current.get(name)
                id_ = 0 if here is None else here.id
                forecasts[name] = forecast.visit(
                    name,
                    here,
                    dirty=name in changes.dirty,
                    back=id_ in newer and id_ in changes.restored,
                    observation=observation.observations.get(id_),
                    well=observation.well.get(id_),
                    unseen=observation.unseen.get(id_, ""),
                    as_built=not self.intent.converge and self._is_as_built(name, changes),
                )
                charge(forecasts[name].changed, forecasts[name].metadata, entries=0)
        if forecast.faults and not self.intent.within:
            raise InvalidTemplate(forecast.faults)
        self.faults = forecast.faults
        return forecasts

    def _is_as_built(self, name: str, changes: Changes) -> bool:
        """Whether the last update of a resource applied the desired definition."""
        row = changes.current.get(name)
        return row is not None and row.status == "COMPLETE" and row.built_digest == self.desired[name].digest

    def _in_order(self, names: Sequence[str]) -> Iterator[list[str]]:
        """Yield slices of names, requirements before dependents."""
        graph = build(names, [self.template.resources[name].requires for name in names])
        for start in range(0, len(names), SLICE):
            yield [names[position] for position in graph.order[start : start + SLICE]]

    def current_resources(self, db: Db, id_: int) -> CurrentResource | None:
        """Return the current resources, by name."""
        return self._current_resources(db, [id_]).get(id_)

    def _current_resources(self, db: Db, ids: Collection[int]) -> dict[int, CurrentResource]:
        if not ids:
            return {}
        return {
            stored.id: opened(stored, self.context.cipher)
            for stored in preview_reads.values(db, self.stack.id, ids)
        }

    def _deleted(self, db: Db, rows: Sequence[Row], changes: Changes) -> list[tuple[Row, str]]:
        """Return the rows that the update deletes, except replaced rows, with remarks."""
        kept = {row.id for row in changes.current.values()} | set(changes.never_created)
        going = [row for row in rows if row.id not in kept and changes.deposed_by.get(row.id) is None]
        retained = preview_reads.retained(db, self.stack.id, [row.id for row in going], RETAINED)
        removed = []
        for row in going:
            because = ""
            if row.name in self.desired:
                going_on = row.action == "DELETE" or row.op == "DELETE"
                because = "it is being removed already" if going_on else "it is left over from before"
            removed.append(
                (row, "; ".join(text for text in (because, NOT_LISTED if row.id in retained else "") if text))
            )
        return removed

    def _preview(
        self,
        rows: Sequence[Row],
        changes: Changes,
        expected: Mapping[str, ForecastResource],
        deleted: Sequence[tuple[Row, str]],
    ) -> UpdatePreview:
        said = {
            name for name, forecast in expected.items() if forecast.turn != "unchanged" or forecast.because
        }
        required_by = self._required_by(rows, said, {row.name for row, _ in deleted})
        items: dict[str, list[ResourceChange]] = {
            turn: [] for turn in ("unchanged", "updated", "replaced", "added", "deleted")
        }
        for name, definition in self.template.resources.items():
            if name not in said:
                continue
            row, resource_type = changes.current.get(name), self.kinds.of(definition)
            items[expected[name].turn].append(
                ResourceChange(
                    expected[name],
                    definition.type,
                    None if row is None or row.never_created else row.id,
                    required_by[name],
                    str(definition.body.get("description") or ""),
                    sorted(resource_type.attributes) if isinstance(resource_type, ResourceType) else (),
                )
            )
        for row, because in deleted:
            gone = ForecastResource(row.name, "deleted", because)
            items["deleted"].append(ResourceChange(gone, row.resource_type, row.id, required_by[row.name]))
        unchanged = frozenset(name for name in self.template.resources if name not in said)
        stacks = frozenset(name for name in self.template.resources if self._is_nested(name))
        stack = self.stack
        return UpdatePreview(unchanged, items, stack, stack.name, stack.parent_resource, stacks=stacks)

    def _is_nested(self, name: str) -> bool:
        return self.kinds.is_nested(self.template.resources[name])

    def _required_by(
        self, rows: Sequence[Row], names: Collection[str], gone: Collection[str]
    ) -> dict[str, list[str]]:
        """Return the dependents of these resources: by the template, and for resources to delete by their
        stored requirements.
        """
        dependents: dict[str, list[str]] = {name: [] for name in (*names, *gone)}
        for name, definition in self.template.resources.items():
            for required in definition.requires:
                if required in names:
                    dependents[required].append(name)
        by_id = {row.id: row.name for row in rows}
        for row in rows:
            for id_ in row.requires:
                required = by_id.get(id_, "")
                if required in gone and required not in names and row.name not in dependents[required]:
                    dependents[required].append(row.name)
        return dependents


def opened(stored: StoredProperties, cipher: Cipher) -> CurrentResource:
    """Return a resource with decrypted values."""
    sealed: JsonMapping = cipher.open(stored.sealed.encode()) if stored.sealed else {}
    return CurrentResource(
        *stored[:10],
        sealed.get("reference_id", stored.reference_id),
        sealed.get("properties", stored.properties) or {},
        sealed.get("attributes", stored.attributes) or {},
        sealed.get("data", stored.data) or {},
        sealed.get("metadata", stored.metadata),
        bool(sealed),
        recorded_secrets(sealed),
        stored.marked_unhealthy,
    )
