"""The resources of accepted templates: known before the plan has written their rows.

A large template is stored a second time as slices of names, so that a page of a million resources is read
without parsing the template.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

import orjson
from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.engine.states import NODE_ENDS
from orchestrator.store.connections.prepared import fetch_prepared
from orchestrator.store.tables.base import check_in, check_not_in

Db = Connection[TupleRow]

PART_LENGTH: Final = 1_000  # resources in a slice
TEMPLATE_ACTIONS: Final = ("CREATE", "UPDATE", "ROLLBACK", "ADOPT", "RESTORE")  # lead to a template

# Whether the plan of a stack `s` is unfinished.
IS_PLANNING: Final = f"""EXISTS (
    SELECT 1 FROM graph_node n WHERE n.stack_id = s.id AND n.traversal = s.traversal AND n.kind = 'plan'
        AND n.label = 'plan' AND {check_not_in("n.state", NODE_ENDS)})"""
# Such stacks, with the revision that is being planned.
PLANNING: Final = f"""
SELECT s.id, s.revision_id, length(c.body) FROM stack s
JOIN revision v ON v.id = s.revision_id JOIN content c ON c.hash = v.template_hash
WHERE s.id = ANY(%(stacks)s::bigint[]) AND {check_in("s.action", TEMPLATE_ACTIONS)} AND {IS_PLANNING}
"""
EXISTING: Final = """
SELECT DISTINCT name FROM resource
WHERE stack_id = %(stack_id)s::bigint AND name = ANY(%(names)s::text[])
"""
PART: Final = """
SELECT last_name, entries FROM accepted_resources
WHERE revision_id = %(revision_id)s::bigint AND last_name {} %(name)s::text ORDER BY last_name LIMIT 1
"""
PART_AFTER: Final = PART.format(">")
PART_WITH: Final = PART.format(">=")
INSERT: Final = """
INSERT INTO accepted_resources (revision_id, last_name, entries)
SELECT %(revision_id)s, x.last_name, x.entries
FROM unnest(%(names)s::text[], %(entries)s::bytea[]) AS x(last_name, entries)
"""


class AcceptedResource(NamedTuple):
    """A resource of an accepted template."""

    name: str
    type: str  # as in the template
    runs_as: str | None  # the type that the environment maps it to
    description: str
    requires: Sequence[str]


class Part(NamedTuple):
    """A slice of the resources of a template, by name."""

    last_name: str
    entries: bytes


class PlannedRevision(NamedTuple):
    """A revision that is being planned."""

    id: int
    length: int  # of its template, in bytes


def parts_of(resources: Iterable[AcceptedResource]) -> Iterator[Part]:
    """Yield the slices of resources that are sorted by name."""
    rest = iter(resources)
    while slice_ := list(islice(rest, PART_LENGTH)):
        yield Part(slice_[-1].name, orjson.dumps([tuple(resource) for resource in slice_]))


def insert_parts(db: Db, revision_id: int, parts: Sequence[Part]) -> None:
    """Store the slices of a revision's template."""
    if parts:
        names, entries = [part.last_name for part in parts], [part.entries for part in parts]
        db.execute(INSERT, {"revision_id": revision_id, "names": names, "entries": entries})


def part_after(db: Db, revision_id: int, name: str | None) -> list[AcceptedResource]:
    """Return the slice with the resource after a name, or the first; empty at the end."""
    return _read(db, PART_AFTER, revision_id, name or "")


def part_with(db: Db, revision_id: int, name: str) -> list[AcceptedResource]:
    """Return the slice with a name, if any slice has it."""
    return _read(db, PART_WITH, revision_id, name)


def _read(db: Db, statement: str, revision_id: int, name: str) -> list[AcceptedResource]:
    rows = fetch_prepared(db, statement, {"revision_id": revision_id, "name": name})
    return [AcceptedResource(*entry) for _, entries in rows for entry in orjson.loads(entries)]


def planning(db: Db, stack_ids: Collection[int]) -> dict[int, PlannedRevision]:
    """Return the revisions that are being planned, by stack."""
    rows = fetch_prepared(db, PLANNING, {"stacks": list(stack_ids)})
    return {stack_id: PlannedRevision(revision_id, length) for stack_id, revision_id, length in rows}


def existing(db: Db, stack_id: int, names: Sequence[str]) -> set[str]:
    """Return those among the names that have rows."""
    rows = fetch_prepared(db, EXISTING, {"stack_id": stack_id, "names": list(names)})
    return {row[0] for row in rows}
