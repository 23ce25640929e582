"""The nodes that a traversal visits, from the definitions and the existing rows. Pure
(docs/internals/protocol.md rules 7, 8).

Revisions are not compared with each other. Each resource is compared with the definition and the inputs that
it was created from, so that the unfinished work of an interrupted traversal is found at any later time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from orchestrator.engine.output_digests import is_current_input


class Row(NamedTuple):
    """An existing resource, as far as a plan needs it."""

    id: int
    name: str
    resource_type: str  # the name of the type that manages it
    action: str
    status: str
    op: str | None
    attempt: int
    built_digest: bytes | None
    requires: Sequence[int]
    input_digests: Sequence[str]
    value_digest: str | None
    deposed: bool
    suspended: bool = False
    suspect: bool = False  # found absent or in error beside operations, or to take back what it released

    @property
    def never_created(self) -> bool:
        """Whether its create was never started."""
        return self.action == "INIT" and self.attempt == 0


class DesiredRow(NamedTuple):
    """A resource of the template."""

    digest: bytes
    resource_type: str
    requires: frozenset[str]
    early: frozenset[str] = frozenset()  # requirements that it needs only to exist (adr/0015)


@dataclass(slots=True)
class Changes:
    """The result of planning: the current row of each name, the visits, and the deletes."""

    current: dict[str, Row]
    dirty: set[str] = field(default_factory=set)  # visited even if no requirement changes
    visited: list[str] = field(
        default_factory=list
    )  # dirty resources and all their dependents, in the template's order
    restored: list[int] = field(default_factory=list)  # deposed rows that become current again
    deposed_by: dict[int, int | None] = field(
        default_factory=dict
    )  # newly deposed rows, with the replacement of each
    never_created: list[int] = field(default_factory=list)  # rows to drop
    cleanups: list[Row] = field(default_factory=list)  # deposed rows that no remaining resource requires


def plan_changes(
    rows: Sequence[Row],
    desired: Mapping[str, DesiredRow],
    started: Collection[str] = (),
    *,
    back: bool = False,
    settled: Sequence[Row] = (),
) -> Changes:
    """Return the changes from `rows` to the desired definitions; `started` are names that the traversal
    visits already. `back`, for a rollback, prefers the oldest row: its definition and inputs may be current
    again. `settled` are rows of other resources, which are required and need no visit.

    The rule has two more copies in SQL: CHANGED_MEMBERS in `store/planning/group_diff.py` for rows without
    requirements, and UNSETTLED in `store/planning/repair_diff.py`. Change them together; property tests
    compare them.
    """
    by_name: dict[str, list[Row]] = {}
    for row in rows:
        by_name.setdefault(row.name, []).append(row)
    chosen = {}
    for name, definition in desired.items():
        best = _best(by_name.get(name, ()), definition, back=back)
        if best is not None:
            chosen[name] = best
    changes = Changes(chosen)
    kept = {row.id for row in chosen.values()}
    changes.restored = [row.id for row in chosen.values() if row.deposed]
    for row in rows:
        if row.id in kept:
            continue
        if row.never_created:
            changes.never_created.append(row.id)
        elif not row.deposed:
            replacement = chosen.get(row.name)
            changes.deposed_by[row.id] = None if replacement is None else replacement.id
    by_id = {row.id: row for row in (*rows, *settled)}
    current = {**{row.name: row for row in settled}, **chosen} if settled else chosen
    changes.dirty = {
        name
        for name, definition in desired.items()
        if name in started or name not in chosen or _is_dirty(chosen[name], definition, current, by_id)
    }
    changes.visited = _downstream(desired, changes.dirty)
    changes.cleanups = _removable_now(rows, kept, set(changes.never_created))
    return changes


def _best(rows: Iterable[Row], definition: DesiredRow, *, back: bool) -> Row | None:
    """Return the row to continue with: first a row with the desired definition, then the newest, in a
    rollback the oldest; never a row that is being deleted.
    """
    usable = [
        row
        for row in rows
        if row.action != "DELETE"
        and row.op != "DELETE"
        and not (row.never_created and row.resource_type != definition.resource_type)
    ]
    if not usable:
        return None
    return max(
        usable,
        key=lambda row: (
            (10 if row.built_digest == definition.digest else 0)
            - (30 if row.status == "FAILED" else 0)
            - (1 if row.deposed and not back else 0),
            -row.id if back else row.id,
        ),
    )


def _is_dirty(row: Row, definition: DesiredRow, chosen: Mapping[str, Row], by_id: Mapping[int, Row]) -> bool:
    if (
        row.built_digest != definition.digest
        or row.status != "COMPLETE"
        or row.op is not None
        or row.action == "INIT"
        or row.deposed
        or row.suspended
        or row.suspect
        or row.resource_type != definition.resource_type
        or len(row.requires) != len(definition.requires)
    ):
        return True
    for id_, digest in zip(row.requires, row.input_digests, strict=True):
        required = by_id.get(id_)
        if required is None or chosen.get(required.name) is not required:
            return True
        if not is_current_input(digest, required.value_digest):
            return True
    return False


def _downstream(desired: Mapping[str, DesiredRow], dirty: set[str]) -> list[str]:
    """Return the dirty names and all their direct and indirect dependents."""
    if len(dirty) == len(desired):
        return list(desired)
    dependents: dict[str, list[str]] = {}
    for name, definition in desired.items():
        for required in definition.requires:
            dependents.setdefault(required, []).append(name)
    reached, todo = set(dirty), list(dirty)
    while todo:
        for name in dependents.get(todo.pop(), ()):
            if name not in reached:
                reached.add(name)
                todo.append(name)
    return [name for name in desired if name in reached]


def _removable_now(rows: Sequence[Row], kept: set[int], never_created: set[int]) -> list[Row]:
    """Return the deposed rows that can be deleted at once: only other such rows require them.

    The remaining rows are deleted after all updates, when the final requirements are known (adr/0002).
    """
    removable = {row.id: row for row in rows if row.id not in kept and row.id not in never_created}
    required: list[int] = []
    for row in rows:
        if row.id in kept:
            required += [id_ for id_ in row.requires if id_ in removable]
    while required:
        row = removable.pop(required.pop(), None)  # type: ignore[arg-type]
        if row is not None:
            required += [id_ for id_ in row.requires if id_ in removable]
    return list(removable.values())
