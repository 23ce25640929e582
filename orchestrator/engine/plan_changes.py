"""What a traversal has to visit, from what is wanted and what is there. Pure
(docs/internals/protocol.md rules 7, 8).

Nothing is compared between revisions: a resource is judged by what it was built from and with, so that what
an interrupted traversal left half done is found, whatever came after it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


class Row(NamedTuple):
    """What a plan needs to know of a resource that is there."""

    id: int
    name: str
    kind: str  # the type that carries it out
    action: str
    status: str
    op: str | None
    attempt: int
    built_digest: bytes | None
    requires: Sequence[int]
    input_digests: Sequence[str]
    value_digest: str | None
    leftover: bool
    suspended: bool = False

    @property
    def unmade(self) -> bool:
        """Whether nobody ever began to make it."""
        return self.action == "INIT" and self.attempt == 0


class DesiredRow(NamedTuple):
    """One resource of the template."""

    digest: bytes
    kind: str
    requires: frozenset[str]


@dataclass(slots=True)
class Changes:
    """What to write: which row stands for which name, which are visited, which go."""

    current: dict[str, Row]
    dirty: set[str] = field(default_factory=set)  # to be visited whatever its requirements hand on
    visited: list[str] = field(default_factory=list)  # these and all downstream, in the template's order
    restored: list[int] = field(default_factory=list)  # leftovers that the template has again
    deposed_by: dict[int, int | None] = field(default_factory=dict)  # new leftovers, and what replaces each
    unmade: list[int] = field(default_factory=list)  # rows to drop
    cleanups: list[Row] = field(default_factory=list)  # leftovers that nothing that stays stands on


def plan_changes(
    rows: Sequence[Row],
    wanted: Mapping[str, DesiredRow],
    started: Collection[str] = (),
    *,
    back: bool = False,
) -> Changes:
    """Return what brings `rows` to what is `wanted`; `started` are names the traversal visits already. On the
    way `back`, what was there first is preferred: its definition may be the same, and its inputs again too.

    The rule for rows without requirements has a second copy in SQL, CHANGED_MEMBERS in
    `store/planning/group_diff.py`. Change both together; a property test compares them.
    """
    by_name: dict[str, list[Row]] = {}
    for row in rows:
        by_name.setdefault(row.name, []).append(row)
    chosen = {}
    for name, want in wanted.items():
        best = _best(by_name.get(name, ()), want, back=back)
        if best is not None:
            chosen[name] = best
    changes = Changes(chosen)
    kept = {row.id for row in chosen.values()}
    changes.restored = [row.id for row in chosen.values() if row.leftover]
    for row in rows:
        if row.id in kept:
            continue
        if row.unmade:
            changes.unmade.append(row.id)
        elif not row.leftover:
            heir = chosen.get(row.name)
            changes.deposed_by[row.id] = None if heir is None else heir.id
    by_id = {row.id: row for row in rows}
    changes.dirty = {
        name
        for name, want in wanted.items()
        if name in started or name not in chosen or _is_dirty(chosen[name], want, chosen, by_id)
    }
    changes.visited = _downstream(wanted, changes.dirty)
    changes.cleanups = _removable_now(rows, kept, set(changes.unmade))
    return changes


def _best(rows: Iterable[Row], want: DesiredRow, *, back: bool) -> Row | None:
    """Return the row to go on with: the one built as wanted before the newest, or on the way back the oldest;
    never one being removed.
    """
    usable = [
        row
        for row in rows
        if row.action != "DELETE" and row.op != "DELETE" and not (row.unmade and row.kind != want.kind)
    ]
    if not usable:
        return None
    return max(
        usable,
        key=lambda row: (
            (10 if row.built_digest == want.digest else 0)
            - (30 if row.status == "FAILED" else 0)
            - (1 if row.leftover and not back else 0),
            -row.id if back else row.id,
        ),
    )


def _is_dirty(row: Row, want: DesiredRow, chosen: Mapping[str, Row], by_id: Mapping[int, Row]) -> bool:
    if (
        row.built_digest != want.digest
        or row.status != "COMPLETE"
        or row.op is not None
        or row.action == "INIT"
        or row.leftover
        or row.suspended
        or row.kind != want.kind
        or len(row.requires) != len(want.requires)
    ):
        return True
    for id_, digest in zip(row.requires, row.input_digests, strict=True):
        required = by_id.get(id_)
        if required is None or chosen.get(required.name) is not required or required.value_digest != digest:
            return True
    return False


def _downstream(wanted: Mapping[str, DesiredRow], dirty: set[str]) -> list[str]:
    """Return the dirty names and all that require them, however far."""
    if len(dirty) == len(wanted):
        return list(wanted)
    dependents: dict[str, list[str]] = {}
    for name, want in wanted.items():
        for required in want.requires:
            dependents.setdefault(required, []).append(name)
    reached, todo = set(dirty), list(dirty)
    while todo:
        for name in dependents.get(todo.pop(), ()):
            if name not in reached:
                reached.add(name)
                todo.append(name)
    return [name for name in wanted if name in reached]


def _removable_now(rows: Sequence[Row], kept: set[int], unmade: set[int]) -> list[Row]:
    """Return the leftovers that may go at once: nothing stands on them but others that go at once.

    The rest goes when all updates are done and it is known what stands on what (adr/0002).
    """
    going = {row.id: row for row in rows if row.id not in kept and row.id not in unmade}
    held: list[int] = []
    for row in rows:
        if row.id in kept:
            held += [id_ for id_ in row.requires if id_ in going]
    while held:
        row = going.pop(held.pop(), None)  # type: ignore[arg-type]
        if row is not None:
            held += [id_ for id_ in row.requires if id_ in going]
    return list(going.values())
