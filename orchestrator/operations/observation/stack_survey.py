"""Observe all resources of a stack and its nested stacks now, for a request.

Types with lists are observed with them if the stack has many of their resources; all others by requests in
parallel, within a time budget. Nothing is written. Each observation keeps the version of the row that was
read before it, so that a mark is written only if nobody has changed the row meanwhile.
"""

from __future__ import annotations

import datetime as dt
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple

from orchestrator.engine.check.outcome import error_text
from orchestrator.engine.check.visit import ResourceVisit
from orchestrator.engine.observation.differences import Recorded
from orchestrator.engine.observation.drift import IN_SYNC, Drift
from orchestrator.engine.observation.judgement import (
    Evidence,
    Unlisted,
    Unobserved,
    judge,
    without_accepted,
)
from orchestrator.engine.observation.policies import Place, Rule, accepts
from orchestrator.errors import AwaitingBudget, LimitExceeded
from orchestrator.operations.context import OperationContext
from orchestrator.operations.keystone.delegated_credentials import cloud_of_reader
from orchestrator.operations.observation.findings import (
    context_in_list,
    evidence_of,
    observable,
    recorded_values,
)
from orchestrator.operations.observation.list_round import batches
from orchestrator.operations.resource_context.operation import with_provider_access
from orchestrator.operations.resource_context.state import load_state
from orchestrator.operations.runtime import turns
from orchestrator.operations.software.type_store import DeploymentStore
from orchestrator.resources.base import Context, Observation, ResourceType
from orchestrator.resources.verbs.contexts import list_context
from orchestrator.store.connections.database import UNREACHABLE
from orchestrator.store.observation import rules, watched
from orchestrator.store.observation.watched import Placed, VersionedVisit
from orchestrator.store.stacks.stacks import StackRow

MAX_PREVIEW_OBSERVATIONS: Final = 500  # resources that need a request each
AT_ONCE: Final = 16  # parallel requests
SECONDS: Final = 60.0  # for all observations; each request has its own deadline
SLICE: Final = 200  # resources whose values are in memory at a time
FROM_LIST: Final = 20  # resources of a list, from which on it is read
BUDGET_PAUSE_SECONDS: Final = 0.2  # until a request without a free place at its service is tried again
NO_ANSWER: Final = Unobserved("there was no answer in time")

Types = Mapping[str, ResourceType]
Found = tuple[Placed, ResourceType]


class Surveyed(NamedTuple):
    """A resource that is not in sync, or could not be observed."""

    placed: Placed
    visit: ResourceVisit
    type: ResourceType
    recorded: Recorded
    evidence: Evidence
    drift: Drift  # in a survey without accepted differences


class Survey(NamedTuple):
    """The observation of a stack and its nested stacks."""

    observed: Mapping[str, int]  # resources that gave an answer, by service
    deviating: Sequence[Surveyed]


def survey(context: OperationContext, stack: StackRow) -> Survey:
    """Observe the resources of a stack and its nested stacks that are at rest.

    Raises:
        LimitExceeded: too many of them need a request each.
    """
    with context.database.borrow(hot=False) as db:
        found = [
            (placed, type_)
            for placed in watched.tree(db, stack.id)
            if (type_ := observable(context.types, placed.item.type_name)) is not None
        ]
    pool = ThreadPoolExecutor(AT_ONCE, "survey")
    try:
        surveyor = _Surveyor(context, stack, pool)
        surveyor.read_lists(found)
        observed, deviating = Counter[str](), list[Surveyed]()
        for part in batches(found, SLICE):
            for surveyed in surveyor.observe(part):
                observed[surveyed.type.service] += not isinstance(surveyed.evidence, Unobserved)
                if surveyed.drift != IN_SYNC:
                    deviating.append(surveyed)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    return Survey(observed, _without_accepted(context, stack, deviating))


class _Surveyor:
    """Observes resources in parallel, until its time is over."""

    def __init__(self, context: OperationContext, stack: StackRow, pool: ThreadPoolExecutor) -> None:
        """The time begins."""
        self.context, self.stack, self.pool = context, stack, pool
        self.cloud = cloud_of_reader(context.settings, context.caller)
        self.until = time.monotonic() + SECONDS
        self.lists: dict[tuple[str, str], Mapping[str, Any] | Unobserved] = {}  # objects by list and id

    def read_lists(self, found: Sequence[Found]) -> None:
        """Read the lists of types with many resources; keep the objects of the stack.

        Raises:
            LimitExceeded: too many resources need a request each.
        """
        wanted: dict[tuple[str, str], set[str]] = defaultdict(set)
        types: dict[tuple[str, str], ResourceType] = {}
        for placed, type_ in found:
            if type_.lists:
                wanted[_list_of(type_)].add(placed.item.physical_id)
                types[_list_of(type_)] = type_
        many = {key: ids for key, ids in wanted.items() if len(ids) >= FROM_LIST}
        single, most = (
            sum(1 for _, type_ in found if _list_of(type_) not in many),
            MAX_PREVIEW_OBSERVATIONS,
        )
        if single > most:
            raise LimitExceeded(
                f"{single} resources of the stack need a request each to be observed, more than {most}. "
                "Update the stack with 'converge' instead."
            )
        ctx = list_context(self.stack.project_id, self.cloud)
        futures = {key: self.pool.submit(_objects, types[key], ctx, ids) for key, ids in many.items()}
        self._wait(futures.values())
        self.lists = {key: _result(future) for key, future in futures.items()}

    def observe(self, part: Sequence[Found]) -> Iterator[Surveyed]:
        """Yield the judgements of a slice of resources, without those that have changed since it was read."""
        with self.context.database.borrow(hot=False) as db:
            rows = {row.visit.resource.id: row for row in watched.visits(db, [p.item.id for p, _ in part])}
        read: list[tuple[Placed, ResourceType, ResourceVisit, Recorded, Future[Evidence]]] = []
        for placed, type_ in part:
            row = rows.get(placed.item.id)
            if row is not None and row.version == placed.item.version:
                ctx, recorded = self._context(type_, row)
                future = self.pool.submit(self._evidence, placed, type_, ctx)
                read.append((placed, type_, row.visit, recorded, future))
        self._wait(future for *_, future in read)
        for placed, type_, visit, recorded, future in read:
            evidence: Evidence = _result(future)
            drift = replace(judge(recorded, evidence), confirmed=True)
            yield Surveyed(placed, visit, type_, recorded, evidence, drift)

    def _context(self, type_: ResourceType, found: VersionedVisit) -> tuple[Context, Recorded]:
        visit = found.visit
        state = load_state(visit, self.context.cipher)
        ctx = context_in_list(type_, visit, state, self.cloud, {})
        ctx = with_provider_access(ctx, self.context.settings, visit.stack.project_id, self.cloud)
        ctx = replace(ctx, software=DeploymentStore.at(self.context, self.stack, visit.resource.name))
        return ctx, recorded_values(type_, found, state, ctx)

    def _evidence(self, placed: Placed, type_: ResourceType, ctx: Context) -> Evidence:
        listed, physical_id = self.lists.get(_list_of(type_), {}), placed.item.physical_id
        if isinstance(listed, Unobserved):
            return listed
        if physical_id in listed:
            ctx = replace(ctx, listed={physical_id: listed[physical_id]})
        seen = evidence_of(partial(_patiently, partial(type_.observe, ctx, physical_id), self.until))
        return NO_ANSWER if isinstance(seen, Unlisted) else seen  # the service had no free place in time

    def _wait(self, futures: Iterable[Future[Any]]) -> None:
        turns.await_answers(futures, self.until - time.monotonic())


def _patiently(observe: Callable[[], Observation], until: float) -> Observation:
    """Observe as soon as the service has a free place."""
    while True:
        try:
            return observe()
        except AwaitingBudget:
            if time.monotonic() > until:
                raise
            time.sleep(BUDGET_PAUSE_SECONDS)


def _objects(type_: ResourceType, ctx: Context, ids: set[str]) -> Mapping[str, Any] | Unobserved:
    try:
        return {id_: value for id_, value in type_.list_objects(ctx) if id_ in ids}
    except UNREACHABLE:
        raise  # our own database
    except Exception as error:
        return Unobserved(error_text(error))


def _result(future: Future[Any]) -> Any:
    return future.result() if future.done() and not future.cancelled() else NO_ANSWER


def _without_accepted(
    context: OperationContext, stack: StackRow, deviating: Sequence[Surveyed]
) -> list[Surveyed]:
    """Return the resources that are not in sync without their accepted differences."""
    if not any(surveyed.drift.differences for surveyed in deviating):
        return list(deviating)
    now, shown = dt.datetime.now(dt.UTC), []
    with context.database.borrow(hot=False) as db:
        resources = [
            (one.visit.stack.id, one.visit.resource.name, one.placed.item.type_name) for one in deviating
        ]
        places = rules.places(db, resources)
        around = {id_ for place in places for id_, _ in place.stacks}
        in_force = [row.rule for row in rules.in_force(db, stack.project_id, around)]
    for surveyed, place in zip(deviating, places, strict=True):
        is_accepted = partial(_is_accepted, in_force, place, now=now)
        drift = without_accepted(surveyed.drift, is_accepted)
        if drift != IN_SYNC:
            shown.append(surveyed._replace(drift=drift))
    return shown


def _is_accepted(in_force: Sequence[Rule], place: Place, property_: str, now: dt.datetime) -> bool:
    return accepts(in_force, place, property_, now) is not None


def _list_of(type_: ResourceType) -> tuple[str, str]:
    return (type_.service or type_.name, type_.lists)
