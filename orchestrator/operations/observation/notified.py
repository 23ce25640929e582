"""Observation of objects that notifications name (operations/adr/0020).

A notification only selects objects. It is not believed: each object is requested by its id.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from orchestrator import metrics
from orchestrator.bodies.observations import Notification
from orchestrator.engine.messages import RoundMessage
from orchestrator.engine.observation.drift import GroupKind
from orchestrator.engine.observation.rounds import (
    HASTENED_SHARE,
    MAX_SINGLE,
    MIN_HASTENED,
    MIN_IDLE_SHARE,
    is_mass_loss,
    prefers_lists,
)
from orchestrator.operations.context import Body, OperationContext
from orchestrator.operations.observation.findings import Findings, Lease
from orchestrator.operations.observation.single_round import observe_one
from orchestrator.operations.reconcile.worker_context import WorkerContext
from orchestrator.operations.request_body import read_object
from orchestrator.resources.base import ResourceType
from orchestrator.store.observation import notices, watched
from orchestrator.store.observation.groups import Group, ObservedType
from orchestrator.store.observation.verdicts import Db
from orchestrator.store.observation.watched import Watched

MIN_PAUSE: Final = 0.25  # seconds between two rounds of a project
AGAIN_SECONDS: Final = 1.0  # until an object is observed again


PlaceOf = Callable[[str], ObservedType | None]  # the group of a type, by its name


def notify(context: OperationContext, body: Body) -> Sequence[RoundMessage]:
    """Note the objects that a notification names; return the message that observes them. The answer does not
    depend on whether they exist.

    Raises:
        InvalidTemplate: the request is not valid.
    """
    ids = Notification.read(read_object(body.read())).objects
    if not context.settings.observation:
        return ()
    metrics.count_notified("request", "noted", len(ids))
    with context.database.borrow(hot=False) as db:
        return note(db, context.caller.project_id, ids, context.settings.region_name)


def note(
    db: Db, project_id: str, ids: Sequence[str], region: str, min_interval: float = 5.0
) -> list[RoundMessage]:
    """Note objects; return the message that observes them, unless one is under way."""
    noted = notices.note(db, project_id, ids)
    if not noted.known:
        return []
    if noted.is_full:
        notices.hasten_all(db, project_id, min_interval)
    return notices.ring(db, project_id, region)


class NotifiedRound(NamedTuple):
    """The groups that may have news, and those whose rounds over lists begin now."""

    touched: list[int]
    hastened: list[int]


def observe_notified(engine: WorkerContext, db: Db, group: Group, place_of: PlaceOf) -> NotifiedRound:
    """Observe the noted objects of a project."""
    started = time.monotonic()
    noted = notices.take(db, group.project_id)
    items = watched.named(db, group.project_id, list(noted)) if noted else []
    by_place: dict[tuple[str, GroupKind], list[Watched]] = defaultdict(list)
    for item in items:
        if (of := place_of(item.type_name)) is not None:
            by_place[of.service, of.kind].append(item)
    result = NotifiedRound([], [])
    again: list[str] = []
    calls = 0
    for (service, kind), mine in by_place.items():
        held = notices.hold(db, group, service, kind)
        if held is None:  # a round is in progress, and may have read the lists before the change
            again += [item.physical_id for item in mine]
            continue
        if kind == "lists" and prefers_lists(len(mine), held.objects):
            notices.let_go(db, held, 0)
            if notices.hasten(db, held, MIN_HASTENED, HASTENED_SHARE):
                result.hastened.append(held.id)
            continue
        found, lost = _observe(engine, db, held, mine[:MAX_SINGLE])
        again += [*found, *(item.physical_id for item in mine[MAX_SINGLE:])]
        notices.let_go(db, held, lost)
        result.touched.append(held.id)
        calls += len(mine[:MAX_SINGLE])
    left = set(again)
    notices.postpone(db, group.project_id, again, AGAIN_SECONDS)
    notices.remove(db, group.project_id, {id_: at for id_, at in noted.items() if id_ not in left})
    seconds = time.monotonic() - started
    pause = max(MIN_PAUSE, seconds if items else seconds * MIN_IDLE_SHARE)
    notices.finish(db, group, seconds=seconds, pause=pause, objects=len(items), calls=calls)
    return result


def _observe(engine: WorkerContext, db: Db, group: Group, items: Sequence[Watched]) -> tuple[list[str], int]:
    """Observe objects of a group; return those that are to be observed again soon, and how many objects are
    lost, if so many that no repair is to be started.
    """
    findings, lease = Findings(db, group), Lease(db, group)
    again = []
    for item in items:
        type_: ResourceType = engine.types[item.type_name]
        seen = observe_one(engine, db, findings, item, type_)
        if seen is not None and (not seen.confirmed or seen.transient):
            again.append(item.physical_id)
        lease.renew()
    findings.write()
    lost = findings.missing if is_mass_loss(findings.missing, group.objects) else 0
    return again, lost
