"""The list of the injected damage, and its comparison with the verdicts and repairs of the orchestrator."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from tests.openstack.observation.damage import PORT, SERVER, Damage

Query = Callable[..., list[Any]]

OBJECTS = """
SELECT r.id, r.stack_id, s.root_id, root.name AS root, root.project_id, r.name,
    coalesce(r.runs_as, r.type) AS type, r.physical_id, s.id <> s.root_id AS nested
FROM resource r JOIN stack s ON s.id = r.stack_id JOIN stack root ON root.id = s.root_id
WHERE s.deleted_at IS NULL AND NOT r.deposed AND r.physical_id IS NOT NULL ORDER BY r.id
"""
FAULTS = """
SELECT v.id AS fault_id, v.stack_id, v.name, v.type, v.physical_id, v.verdict, v.reason, v.differences,
    v.since
FROM resource_verdict v WHERE v.confirmed AND v.verdict <> 'IN_SYNC'
UNION ALL
SELECT h.fault_id, h.stack_id, h.name, h.type, h.physical_id, h.verdict, h.reason, h.differences,
    h.first_seen_at
FROM verdict_history h WHERE h.verdict NOT IN ('UNKNOWN', 'IN_SYNC')
"""
REPAIRS = "SELECT fault_id, stack_id, name, physical_id, action, status, reason, started_at FROM repair"


RECOVERABLE: Final = (SERVER,)  # types with their own repair


class Target(NamedTuple):
    """An object of a stack."""

    id: int
    stack_id: int
    root_id: int
    root: str
    project_id: str
    name: str
    type: str
    physical_id: str
    nested: bool

    @property
    def key(self) -> tuple[int, str, str]:
        """Subject of a verdict."""
        return self.stack_id, self.name, self.physical_id


@dataclass
class Entry:
    """An injected damage."""

    target: Target
    damage: Damage
    at: dt.datetime
    mode: str
    also: tuple[Target, ...] = ()  # objects that the damage changes, too

    @property
    def repair(self) -> str:
        """The expected repair: an action, `pending`, or "" for none."""
        if self.mode not in ("heal", "ask"):
            return ""
        failed = "recover" if self.target.type in RECOVERABLE else "replace"
        action = {"MISSING": "recreate", "FAILED": failed, "MODIFIED": "update"}[self.damage.verdict]
        keeps = action in ("update", "recover")
        if self.mode == "ask" or (not keeps and self._holds_data):
            return "pending"
        return action

    @property
    def _holds_data(self) -> bool:
        return self.target.type == "OS::Cinder::Volume" or (
            self.target.type == SERVER and not self.target.nested
        )

    def __str__(self) -> str:
        return f"{self.damage.name} of {self.target.root}/{self.target.name} ({self.target.physical_id})"


def targets(query: Query) -> list[Target]:
    """Return all objects of all stacks."""
    return [Target(*row) for row in query(OBJECTS)]


@dataclass
class Ledger:
    """Everything that was damaged."""

    query: Query
    entries: list[Entry] = field(default_factory=list)
    minutes: list[int] = field(default_factory=list)  # number of entries at the end of each

    def add(self, target: Target, damage: Damage, mode: str, among: Iterable[Target]) -> Entry:
        """Note a damage; `among`: the objects of the stack."""
        entry = Entry(target, damage, dt.datetime.now(dt.UTC), mode, tuple(_also(target, damage, among)))
        self.entries.append(entry)
        return entry

    def contradictions(self, *, settled: bool = True, once: Collection[str] = ()) -> list[str]:
        """Return the disagreements: damage without its verdict, verdicts without damage, repairs that are
        missing, too many or forbidden. Not `settled`: repairs may be under way. `once`: verdicts for which
        an observation of the newest damage was not enough.
        """
        faults: dict[tuple[int, str, str], list[Any]] = {}
        for fault in self.query(FAULTS):
            faults.setdefault((fault.stack_id, fault.name, fault.physical_id), []).append(fault)
        repairs: dict[int, list[Any]] = {}
        for repair in self.query(REPAIRS):
            repairs.setdefault(repair.fault_id, []).append(repair)
        found: list[str] = []
        expected: set[int] = set()
        for entry in self.entries:
            mine = [fault for fault in faults.get(entry.target.key, ()) if _is_of(fault, entry)]
            expected.update(fault.fault_id for fault in mine)
            expected.update(
                fault.fault_id for other in entry.also for fault in faults.get(other.key, ()) if fault.verdict
            )
            if not mine and entry.damage.verdict in once:
                continue
            if len(mine) != 1:
                shown = [(fault.verdict, fault.differences) for fault in faults.get(entry.target.key, ())]
                found.append(f"{entry}: {len(mine)} verdicts, among {shown}")
                continue
            found += _repair_contradictions(entry, repairs.get(mine[0].fault_id, ()), settled=settled)
        for list_ in faults.values():
            found += [
                f"reported without damage: {fault.verdict} {fault.name} {fault.type} {fault.reason}"
                f" {fault.differences}"
                for fault in list_
                if fault.fault_id not in expected
            ]
        return found

    def outcome(self) -> dict[str, int]:
        """Return the number of repairs by status."""
        counted = Counter(repair.status for repair in self.query(REPAIRS))
        return dict(sorted(counted.items()))

    def seconds_to_verdict(self) -> list[float]:
        """Return the times from each damage to its verdict."""
        by_key = {(f.stack_id, f.name, f.physical_id, f.verdict): f.since for f in self.query(FAULTS)}
        found = [(by_key.get((*entry.target.key, entry.damage.verdict)), entry.at) for entry in self.entries]
        return [(since - at).total_seconds() for since, at in found if since is not None]


def _is_of(fault: Any, entry: Entry) -> bool:
    names = {item["property"].partition(".")[0] for item in fault.differences}
    return fault.verdict == entry.damage.verdict and names == set(entry.damage.properties)


def _repair_contradictions(entry: Entry, repairs: Sequence[Any], *, settled: bool) -> list[str]:
    statuses = [(repair.action, repair.status) for repair in repairs]
    match entry.repair:
        case "":
            good = all(status == "reported" for _, status in statuses)
        case "pending":
            good = [status for _, status in statuses] in (["pending"], ["done"], ["declined"])
        case action:
            good = statuses == [(action, "done")] or (
                not settled and all(status in ("waiting", "started") for _, status in statuses)
            )
    if good:
        return []
    shown = [(repair.action, repair.status, repair.reason) for repair in repairs]
    return [f"{entry}: expected {entry.repair or 'no repair'}, found {shown}"]


def _also(target: Target, damage: Damage, among: Iterable[Target]) -> Iterable[Target]:
    """Yield the server of a deleted port: it loses an interface."""
    if target.type == PORT and damage.kind == "deleted":
        name = target.name.replace("port", "server")
        yield from (other for other in among if other.stack_id == target.stack_id and other.name == name)
