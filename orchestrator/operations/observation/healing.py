"""Decide about faults that are due, and start repairs (operations/adr/0019).

Called by the sweep and at the end of a round. Several callers at a time do no harm: a start locks the root
stack, and a fault whose resource has an operation is left out.
"""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator import metrics
from orchestrator.engine.check.outcome import error_text
from orchestrator.engine.messages import CheckMessage, Message
from orchestrator.engine.observation import policies
from orchestrator.engine.observation import repairs as rules_of_repair
from orchestrator.engine.observation.policies import Place, Rule
from orchestrator.engine.observation.repair_limits import Admission, Candidate, Limits, admit
from orchestrator.engine.observation.repairs import (
    MEMORY,
    Action,
    Circumstances,
    Decision,
    Fault,
    RepairStatus,
)
from orchestrator.logs import logger
from orchestrator.operations.observation.faults import Damaged, fault_of, is_in_group, set_properties
from orchestrator.operations.observation.repair_units import memberships
from orchestrator.operations.runtime.maintenance_job import Maintenance, MaintenanceJob
from orchestrator.resources.base import ResourceType
from orchestrator.store.connections.damaged_rows import DAMAGED, damage
from orchestrator.store.connections.database import UNREACHABLE
from orchestrator.store.observation import repair_starts, repairs, rules
from orchestrator.store.observation.repair_starts import Repair
from orchestrator.store.observation.repairs import DecisionRow, FaultRow, Loss, StackState
from orchestrator.store.traversals import traversals

Db = Connection[TupleRow]
log = logger()

REPAIR_SECONDS: Final = 2.0  # between two searches for due repairs

DEFAULT_LIMITS: Final = Limits()
MAX_FAULTS: Final = 500  # decided at a time
NOT_STARTED_SECONDS: Final = 60.0  # after the start of a repair has failed
MAX_REASON: Final = 500

_STATUS: Final[Mapping[str, RepairStatus]] = {
    "report": "reported",
    "wait": "waiting",
    "ask": "pending",
    "give_up": "given_up",
}
# Until a decision is made again; changed rules do it at once.
_SECONDS: Final[Mapping[str, float | None]] = {
    "reported": 300.0,
    "waiting": 5.0,
    "pending": 60.0,
    "given_up": None,
}


class Case(NamedTuple):
    """A fault with all that its decision depends on."""

    row: FaultRow
    fault: Fault
    around: Circumstances
    attempts: Sequence[rules_of_repair.Attempt]


class Start(NamedTuple):
    """The repair of a fault, and the name of its resource."""

    name: str
    repair: Repair


def repair_due_faults(
    db: Db,
    types: Mapping[str, ResourceType],
    group_id: int | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> list[CheckMessage]:
    """Decide about all faults that are due, of a group if given; return the messages of started repairs."""
    for status in repairs.end(db):
        metrics.count_repair(status)
    faults = repairs.due(db, MAX_FAULTS, group_id)
    if not faults:
        return []
    now = dt.datetime.now(dt.UTC)
    chosen: dict[int, tuple[Case, Action]] = {}
    decided: list[DecisionRow] = []
    cases, unread = _cases(db, types, faults, now)
    decided += unread
    for case in cases:
        decision = rules_of_repair.decide(case.fault, case.around, case.attempts, now)
        if decision.verb == "repair" and decision.action is not None:
            chosen[case.row.id] = case, decision.action
        else:
            decided.append(_row(case.row, decision, now))
    admission = _admission(db, types, chosen, limits)
    starts: dict[int, dict[int, Start]] = defaultdict(dict)
    for id_, (case, action) in chosen.items():
        if id_ in admission.started:
            properties = rules_of_repair.corrected(case.fault)
            starts[case.row.root_id][id_] = Start(case.row.name, Repair(action, properties))
        else:
            decided.append(_row(case.row, Decision("wait", action, admission.postponed[id_]), now))
    repairs.decide(db, decided)
    for decision_row in decided:
        if decision_row.status == "given_up":
            metrics.count_repair("given_up")
    messages: list[CheckMessage] = []
    for root_id, first in starts.items():
        try:
            messages += _start(db, root_id, first)
        except UNREACHABLE:
            raise
        except Exception as error:  # a fault of this code must not stop the repairs of other stacks
            log.exception("repair_error", stack_id=root_id)
            repairs.decide(db, [_not_started(chosen[id_], error) for id_ in first])
    return messages


def _not_started(choice: tuple[Case, Action], error: Exception) -> DecisionRow:
    """Return the decision about a repair whose start has failed: it is tried again later."""
    case, action = choice
    reason = f"the repair could not be started: {error_text(error)}"[:MAX_REASON]
    return DecisionRow(case.row.id, action, "waiting", reason, NOT_STARTED_SECONDS, "")


def _admission(
    db: Db, types: Mapping[str, ResourceType], chosen: Mapping[int, tuple[Case, Action]], limits: Limits
) -> Admission:
    """Return which of the chosen repairs start now."""
    units = memberships(db, types, {case.row.stack_id for case, _ in chosen.values()}) if chosen else {}
    candidates = []
    for id_, (case, action) in chosen.items():
        unit, member = units[case.row.stack_id]
        broken = case.fault.state in ("MISSING", "FAILED")
        # A replacement is created before the replaced object is deleted.
        candidate = Candidate(id_, member or case.row.name, broken, interrupts=action == "update")
        candidates.append((unit, candidate))
    return admit(candidates, limits)


def _cases(
    db: Db, types: Mapping[str, ResourceType], faults: Sequence[FaultRow], now: dt.datetime
) -> tuple[list[Case], list[DecisionRow]]:
    """Return the cases of faults, and the decisions about those whose rows cannot be read: they are read
    again later.
    """
    places = rules.places(db, [(fault.stack_id, fault.name, fault.type) for fault in faults])
    around = {id_ for place in places for id_, _ in place.stacks}
    stacks = repairs.stacks(db, around | {fault.root_id for fault in faults})
    holders = rules.holders(db, {fault.stack_id for fault in faults})
    losses = repairs.losses(db, {fault.group_id for fault in faults})
    attempts = repairs.attempts(db, faults, MEMORY)
    by_project = {
        project_id: [row.rule for row in rules.in_force(db, project_id, around)]
        for project_id in {fault.project_id for fault in faults}
    }

    def case(row: FaultRow, place: Place) -> Case:
        in_force = by_project[row.project_id]
        grouped = is_in_group(types, holders.get(row.stack_id, ()))
        tried, type_ = attempts.get((row.stack_id, row.name), ()), types.get(row.type)
        stack = stacks[row.stack_id]
        return Case(
            row,
            _fault(row, type_, in_force, place, stack, now, tried, grouped=grouped),
            _circumstances(row, in_force, place, stacks, losses.get(row.group_id), now),
            tried,
        )

    cases, unread = list[Case](), list[DecisionRow]()
    for row, place in zip(faults, places, strict=True):
        if row.root_id not in stacks or row.stack_id not in stacks:
            continue
        try:
            cases.append(case(row, place))
        except DAMAGED as error:
            log.error("row_damaged", kind="fault", id=row.id, stack_id=row.stack_id, error=damage(error))
            unread.append(DecisionRow(row.id, None, "waiting", damage(error), NOT_STARTED_SECONDS, ""))
    return cases, unread


def _fault(
    row: FaultRow,
    type_: ResourceType | None,
    in_force: Sequence[Rule],
    place: Place,
    stack: StackState,
    now: dt.datetime,
    attempts: Sequence[rules_of_repair.Attempt],
    *,
    grouped: bool,
) -> Fault:
    paths = [str(item["property"]) for item in row.differences]
    left = [path for path in paths if policies.accepts(in_force, place, path, now) is None]
    damaged = Damaged(
        row.name,
        type_,
        never_active=row.resource_status == "FAILED" and row.resource_action == "CREATE",
        recoverable=row.resource_status == "COMPLETE" and rules_of_repair.is_worth_recovering(attempts),
        grouped=grouped,
        external=row.external,
        set_properties=set_properties(row.set_properties, row.recorded_properties, paths),
        environment=stack.environment,
    )
    return fault_of(row.verdict, left, damaged)


def _circumstances(
    row: FaultRow,
    in_force: Sequence[Rule],
    place: Place,
    stacks: Mapping[int, StackState],
    loss: Loss | None,
    now: dt.datetime,
) -> Circumstances:
    pause = policies.paused(in_force, place, now)
    return Circumstances(
        policies.effective(in_force, place).mode,
        f"repairs are paused: {pause.reason}" if pause is not None else "",
        f"{loss.lost} of {loss.observed} objects of {loss.service} disappeared at once: the fault may be the "
        "provider's"
        if loss is not None
        else "",
        _busy(stacks, row, place),
        approved=row.status == "approved",
    )


def busy(root: StackState) -> str:
    """Return why no repair of a root stack may start; empty: it is at rest."""
    if root.status == "IN_PROGRESS":
        return "an operation of the stack is in progress"
    if root.action in ("SUSPEND", "DELETE"):
        return "the stack is suspended or deleted"
    if not root.reached or (root.status == "FAILED" and root.action != "CHECK" and not root.repaired):
        return "the stack has not reached its desired revision: update it"
    return ""


def _busy(stacks: Mapping[int, StackState], row: FaultRow, place: Place) -> str:
    """Return why no traversal may start: only a stack at rest is repaired."""
    if reason := busy(stacks[row.root_id]):
        return reason
    if any(stacks[id_].status == "IN_PROGRESS" for id_, _ in place.stacks if id_ in stacks):
        return "an operation of a nested stack is in progress"
    return ""


def _row(fault: FaultRow, decision: Decision, now: dt.datetime) -> DecisionRow:
    status = _STATUS[decision.verb]
    seconds = _SECONDS[status]
    if status == "waiting" and decision.due_at is not None:
        seconds = max((decision.due_at - now).total_seconds(), 1.0)
    told = {
        "pending": f"Automatic repair ({decision.action}) waits for an approval: {decision.reason}",
        "given_up": f"Automatic repair given up: {decision.reason}",
    }.get(status, "")
    return DecisionRow(fault.id, decision.action, status, decision.reason, seconds, told)


def _start(db: Db, root_id: int, starts: Mapping[int, Start]) -> Iterable[CheckMessage]:
    """Start a traversal of the current revision over the damaged resources of a stack tree."""
    with db.transaction():
        stack = traversals.lock(db, root_id)
        state = repairs.stacks(db, [root_id]).get(root_id)
        if stack is None or state is None or state.status == "IN_PROGRESS" or not state.reached:
            return []
        marked = repair_starts.mark(db, root_id, {id_: start.repair for id_, start in starts.items()})
        if not marked:
            return []
        names = [starts[fault_id].name for fault_id in sorted(marked)]
        stack_ids = set(marked.values())
        started = repair_starts.begin(db, root_id, stack_ids, "automatic repair", names, automatic=True)
        chosen = {fault_id: starts[fault_id].repair.action for fault_id in sorted(marked)}
        repair_starts.record(db, root_id, started.traversal, chosen)
    metrics.count_repair("started", len(marked))
    log.info("audit", action="stacks:repair", automatic=True, stack_id=root_id, resources=len(marked))
    return [started.message]


def repair(tools: Maintenance) -> Sequence[Message]:
    """Start due repairs. A fault of this code must not stop the sweep."""
    if not tools.settings.observation:
        return ()
    try:
        return repair_due_faults(tools.db, tools.types)
    except UNREACHABLE:
        raise
    except Exception:
        log.exception("repair_error")
        return ()


REPAIRS: Final = MaintenanceJob("repairs", repair, repairs.HAS_FAULTS, every=REPAIR_SECONDS)
