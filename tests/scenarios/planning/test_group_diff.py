"""The rule of `engine/plan_changes.py` has a second copy in SQL, for groups: both find the same members."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import count
from typing import Any, NamedTuple

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.engine.plan_changes import DesiredRow, plan_changes
from orchestrator.store.planning import bulk_writer, group_diff
from tests.scenarios.world import World

NAMES = [str(number) for number in range(4)]
INSERT_ROW = """
INSERT INTO resource (uuid, stack_id, name, type, runs_as, action, status, op, op_started_at, attempt,
    built_digest, requires, input_digests, deposed, suspended)
VALUES (gen_random_uuid(), %(stack_id)s, %(name)s, %(type)s, %(runs_as)s, %(action)s, %(status)s,
    %(op)s::text::resource_op,
    CASE WHEN %(op)s::text IS NOT NULL THEN now() END, %(attempt)s, %(built)s, %(requires)s,
    array_fill('x'::text, ARRAY[cardinality(%(requires)s::bigint[])]), %(deposed)s, %(suspended)s)
"""
INSERT_DEFINITION = """
INSERT INTO resource_definition (stack_id, name, digest, body, valid_from)
VALUES (%(stack_id)s, %(name)s, %(digest)s, '{}', 1)
"""


class Member(NamedTuple):
    """One member: its definition in the template, its definition in force, its rows."""

    desired: tuple[str, str] | None  # digest of the group's definition, type
    in_force: str | None  # the same digest
    rows: Sequence[dict[str, Any]]


def digest_of(definition: str, name: str) -> bytes:
    return hashlib.sha256(f"{definition}/{name}/".encode()).digest()


definitions = st.sampled_from(["d1", "d2"])
types = st.sampled_from(["A", "B"])
healthy = st.fixed_dictionaries(
    {
        "type": types,
        "runs_as": st.none(),
        "action": st.just("CREATE"),
        "status": st.just("COMPLETE"),
        "op": st.none(),
        "attempt": st.just(1),
        "built": definitions,
        "requires": st.just([]),
        "suspended": st.just(False),
    }
)
any_row = st.fixed_dictionaries(
    {
        "type": types,
        "runs_as": st.none() | types,
        "action": st.sampled_from(["INIT", "CREATE", "UPDATE", "CHECK", "DELETE"]),
        "status": st.sampled_from(["COMPLETE", "FAILED", "IN_PROGRESS"]),
        "op": st.sampled_from([None, None, "CREATE", "UPDATE", "DELETE"]),
        "attempt": st.integers(0, 1),
        "built": st.none() | definitions,
        "requires": st.sampled_from([[], [], [7]]),
        "suspended": st.booleans(),
    }
)


def permitted(row: dict[str, Any]) -> dict[str, Any]:
    """The row as the constraints of the table permit it."""
    status = "COMPLETE" if row["action"] == "INIT" else row["status"]
    return row | {"status": status, "attempt": 1 if row["op"] else row["attempt"]}


one_change = st.builds(
    lambda row, other, column: row | {column: other[column]},
    healthy,
    any_row,
    st.sampled_from(["runs_as", "action", "status", "op", "built", "requires", "suspended"]),
)
rows = st.one_of(healthy, one_change, any_row).map(permitted)
members = st.builds(
    lambda desired, in_force, current, deposed: Member(
        desired,
        in_force,
        [row | {"deposed": False} for row in current] + [row | {"deposed": True} for row in deposed],
    ),
    desired=st.none() | st.tuples(definitions, types),
    in_force=st.none() | definitions,
    current=st.lists(rows, max_size=1),
    deposed=st.just([]) | st.lists(rows, max_size=1),
)


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)  # the examples share a database and use a stack id each
@given(group=st.lists(members, min_size=len(NAMES), max_size=len(NAMES)))
def test_the_database_finds_the_members_that_a_plan_changes(world: World, group: list[Member]) -> None:
    stack_id = next(STACK_IDS)
    db = world.database.check_connection(durable=False)
    for name, member in zip(NAMES, group, strict=True):
        for row in member.rows:
            built = None if row["built"] is None else digest_of(row["built"], name)
            db.execute(INSERT_ROW, row | {"stack_id": stack_id, "name": name, "built": built})
        if member.in_force is not None:
            digest = digest_of(member.in_force, name)
            db.execute(INSERT_DEFINITION, {"stack_id": stack_id, "name": name, "digest": digest})
    spans = [
        (*member.desired, int(name), int(name) + 1)
        for name, member in zip(NAMES, group, strict=True)
        if member.desired is not None
    ]
    result = group_diff.changed_members(db, stack_id, spans, 100)
    assert set(result) == changed(world, stack_id, group)
    assert len(result) == len(set(result))


def changed(world: World, stack_id: int, group: list[Member]) -> set[str]:
    """The names in a plan of the whole group, with those to redefine, and those with deposed rows."""
    db = world.database.check_connection(durable=False)
    desired = {
        name: DesiredRow(digest_of(member.desired[0], name), member.desired[1], frozenset())
        for name, member in zip(NAMES, group, strict=True)
        if member.desired is not None
    }
    rows = bulk_writer.rows(db, stack_id)
    changes = plan_changes(rows, desired)
    ids = {
        *changes.deposed_by,
        *changes.restored,
        *changes.never_created,
        *(row.id for row in changes.cleanups),
    }
    in_force = bulk_writer.definitions(db, stack_id)
    redefined = {
        name
        for name in desired.keys() | in_force.keys()
        if name not in desired or name not in in_force or in_force[name][1] != desired[name].digest
    }
    touched = {row.name for row in rows if row.id in ids or row.deposed}
    return {*changes.visited, *touched, *redefined}


STACK_IDS = count(1_000_000)
