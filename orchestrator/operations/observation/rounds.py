"""Rounds of the continuous observation (operations/adr/0017). A call of `observe_group` is a Celery task."""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from orchestrator import metrics
from orchestrator.engine.check.outcome import error_text
from orchestrator.engine.messages import Message
from orchestrator.engine.observation.drift import OF_PROJECT
from orchestrator.engine.observation.rounds import next_interval, pause
from orchestrator.errors import AwaitingBudget, OrchestratorError, Superseded
from orchestrator.logs import logger
from orchestrator.operations.observation.findings import RoundResult, observable
from orchestrator.operations.observation.list_round import ListRound
from orchestrator.operations.observation.notified import observe_notified
from orchestrator.operations.observation.single_round import SingleRound
from orchestrator.operations.reconcile.worker_context import WorkerContext
from orchestrator.operations.runtime.maintenance_job import (
    AUDIT_SECONDS,
    MAX_ROWS,
    Maintenance,
    MaintenanceJob,
)
from orchestrator.resources.base import ResourceType
from orchestrator.store.connections.database import UNREACHABLE
from orchestrator.store.observation import groups, rules, watched
from orchestrator.store.observation.groups import Group, ObservedType, RoundEnd
from orchestrator.store.observation.verdicts import Db
from orchestrator.watchdog.watch import working_on

log = logger()

MAX_SECONDS: Final = 60.0  # longest interval of rounds over lists
MIN_SECONDS: Final = 5.0  # shortest interval, after a change, a fault or a notification
SINGLE_SECONDS: Final = 600.0  # interval of resources that need a request each
QUIET_MINUTES: Final = 20  # without changes, until the types of a project are read again
POSTPONED_SECONDS: Final = 3.0  # until a round without a free place at the service begins again
MAX_REASON: Final = 1_000  # characters
RoundOutcome = RoundResult | None


def observe_group(engine: WorkerContext, group_id: int) -> Sequence[int]:
    """Carry out a round of a group, if its message is the first and no other worker has the group. Return the
    groups that may have news.
    """
    db = engine.database.check_connection(durable=True)
    group = groups.claim(db, group_id, secrets.randbits(63))
    if group is None:
        return ()
    engine.quarantine.refresh(db)
    started, result = time.monotonic(), "complete"
    touched: Sequence[int] = (group_id,)
    try:
        engine.quarantine.require_released("round", group_id)
        if group.kind == "notified":
            place_of = partial(_observed_type, engine.types)
            notified = observe_notified(engine, db, group, place_of)
            touched = [*notified.touched, *_observe_all(engine, notified.hastened)]
        elif (outcome := _carry_out(engine, db, group)) is None:
            result = "continued"
        else:
            _finish(db, group, outcome, time.monotonic() - started)
    except UNREACHABLE:  # the lease ends, and the sweep sends the message again
        raise
    except Superseded:
        result = "superseded"
    except AwaitingBudget:
        result = "postponed"
        groups.proceed(db, group, group.after_id, group.objects, POSTPONED_SECONDS)
    except Exception as error:
        result = "failed"
        if not isinstance(error, OrchestratorError | OSError):
            log.exception("observation_error", service=group.service, project=group.project_id)
        _fail(db, group, error, time.monotonic() - started)
    metrics.observe_round(group.kind, result, time.monotonic() - started)
    return touched


def _carry_out(engine: WorkerContext, db: Db, group: Group) -> RoundOutcome:
    with working_on("round", group.id):
        return _ROUNDS[group.kind](engine, db, group)


def _observe_all(engine: WorkerContext, group_ids: Sequence[int]) -> list[int]:
    return [touched for group_id in group_ids for touched in observe_group(engine, group_id)]


def _finish(db: Db, group: Group, result: RoundResult, seconds: float) -> None:
    longest = _longest(db, group)
    interval = next_interval(group.interval_seconds, MIN_SECONDS, longest, news=result.news)
    if group.kind != "lists" and not result.unconfirmed:
        interval = longest
    end = RoundEnd(
        pause(interval, seconds, random.random()),  # noqa: S311 - jitter
        interval,
        seconds,
        result.objects,
        result.calls,
        result.credential_id,
        result.lost,
        result.restored,
    )
    groups.finish(db, group, end)


def _fail(db: Db, group: Group, error: Exception, seconds: float) -> None:
    """Record that nothing is known about the group; the interval grows during an outage."""
    reason, longest = error_text(error)[:MAX_REASON], _longest(db, group)
    interval = next_interval(group.interval_seconds, MIN_SECONDS, longest, news=not group.failing)
    if not group.failing:
        log.warning("group_unknown", service=group.service, project=group.project_id, error=reason)
    groups.fail(db, group, reason, interval, pause(interval, seconds, random.random()))  # noqa: S311


def _longest(db: Db, group: Group) -> float:
    """Return the longest interval: of the policies, or the default."""
    default = SINGLE_SECONDS if group.kind == "single" else MAX_SECONDS
    if group.kind in OF_PROJECT:
        return default
    return rules.interval(db, group.project_id, group.types, default)


# The kinds of groups


def _discover(engine: WorkerContext, db: Db, group: Group) -> RoundOutcome:
    """Find the groups of a project, and observe them soon if a stack has changed. The types of all resources
    are read only then, and from time to time. While a stack is at work its types may increase: the discovery
    is complete only at rest.
    """
    at_work, started = watched.activity(db, group.project_id, group.observed_at)
    changed = at_work or started
    minute = int(group.round_at.timestamp() // 60)
    if not changed and (minute + group.id) % QUIET_MINUTES:
        return RoundResult(group.objects, 0, news=False)
    found = [
        type_
        for name in watched.types_in_use(db, group.project_id)
        if (type_ := _observed_type(engine.types, name)) is not None
    ]
    groups.replace_services(db, group.project_id, group.region, found)
    if not found and groups.remove_unused(db, group):
        return None
    if group.observed_at and changed:
        groups.hasten(db, group.project_id, {type_.service for type_ in found if type_.kind == "lists"})
    if at_work:
        groups.proceed(db, group, 0, len(found), _longest(db, group))
        return None
    return RoundResult(len(found), 0, news=False)


def _observed_type(types: Mapping[str, ResourceType], name: str) -> ObservedType | None:
    type_ = observable(types, name)
    if type_ is None:
        return None
    return ObservedType(type_.service or name, "lists" if type_.lists else "single", name)


def _observe_lists(engine: WorkerContext, db: Db, group: Group) -> RoundOutcome:
    return ListRound(engine, db, group, _types(engine, group)).run()


def _observe_singly(engine: WorkerContext, db: Db, group: Group) -> RoundOutcome:
    return SingleRound(engine, db, group, _types(engine, group)).run()


def _types(engine: WorkerContext, group: Group) -> dict[str, ResourceType]:
    """Return the types of the group; a worker of another version may disagree about some of them."""
    expected = {name: _observed_type(engine.types, name) for name in group.types}
    return {
        name: engine.types[name] for name, type_ in expected.items() if type_ and type_.kind == group.kind
    }


_ROUNDS: Final = {"discovery": _discover, "lists": _observe_lists, "single": _observe_singly}


def enqueue_groups(tools: Maintenance) -> Sequence[Message]:
    """Return messages for the groups to be observed."""
    return groups.due(tools.db, MAX_ROWS) if tools.settings.observation else ()


def start_discoveries(tools: Maintenance) -> Sequence[Message]:
    """Have the groups of new resources created."""
    if tools.settings.observation:
        groups.start_discoveries(tools.db, tools.settings.region_name, MAX_SECONDS)
    return ()


GROUPS: Final = MaintenanceJob("observation_groups", enqueue_groups, groups.HAS_DUE, exclusive=True)
DISCOVERIES: Final = MaintenanceJob("discoveries", start_discoveries, every=AUDIT_SECONDS)
