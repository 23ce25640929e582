"""The rule of `engine/plan_changes.py` has a copy in SQL, for repairs: both plan the same visits."""

from __future__ import annotations

import hashlib
from itertools import count
from typing import Any, NamedTuple

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.engine.plan_changes import Changes, DesiredRow, plan_changes
from orchestrator.operations.planning.repair_plan import DefinitionsInForce
from orchestrator.store.planning import bulk_writer, repair_diff
from tests.scenarios.world import World

# Each requires the ones named; a chain, a diamond, and a resource apart.
REQUIRES = {"a": (), "b": ("a",), "c": ("a", "b"), "d": ("c",), "e": ()}
FIRST = 1_000_000
ALWAYS = "Always"
INSERT_ROW = """
INSERT INTO resource (id, uuid, stack_id, name, type, runs_as, action, status, op, op_started_at, attempt,
    built_digest, requires, input_digests, value_digest, deposed, suspended, observed, observed_at)
OVERRIDING SYSTEM VALUE
VALUES (%(id)s, gen_random_uuid(), %(stack_id)s, %(name)s, %(type)s, NULL, %(action)s, %(status)s,
    %(op)s::text::resource_op, CASE WHEN %(op)s::text IS NOT NULL THEN now() END, 1,
    %(built)s, %(requires)s, %(inputs)s, %(value)s, %(deposed)s, %(suspended)s, %(observed)s,
    CASE WHEN %(observed)s::text IS NOT NULL THEN now() END)
"""
INSERT_DEFINITION = """
INSERT INTO resource_definition (stack_id, name, digest, body, requires, valid_from)
VALUES (%(stack_id)s, %(name)s, %(digest)s, %(body)s, %(requires)s, 1)
"""


class Fault(NamedTuple):
    """How a row differs from a settled one."""

    name: str
    column: str
    value: Any


faults = st.one_of(
    st.builds(Fault, st.sampled_from(sorted(REQUIRES)), st.just(column), st.sampled_from(values))
    for column, values in {
        "status": ["FAILED", "IN_PROGRESS"],
        "action": ["DELETE"],
        "op": ["UPDATE", "DELETE"],
        "built": [None, b"other"],
        "value": ["v2", "v1/early-x/early-y", None],
        "inputs": ["early-x", "early-x/early-y", "early-x/early-z", "v2"],
        "lost": ["input"],
        "suspended": [True],
        "observed": ["absent", "error", "changed", "ready"],
        "type": [ALWAYS],
        "gone": ["row", "definition"],
        "deposed": ["alone", "required"],
    }.items()
)


def digest_of(name: str) -> bytes:
    return hashlib.sha256(name.encode()).digest()


def write(db: Any, stack_id: int, found: list[Fault]) -> None:
    """Write the rows and definitions of a stack with these faults."""
    base = stack_id * 100
    ids = {name: base + number for number, name in enumerate(REQUIRES)}
    rows: list[dict[str, Any]] = []
    for name, needs in REQUIRES.items():
        rows.append({
            "id": ids[name], "stack_id": stack_id, "name": name, "type": "T", "action": "CREATE",
            "status": "COMPLETE", "op": None, "built": digest_of(name),
            "requires": [ids[other] for other in needs], "inputs": ["v1"] * len(needs), "value": "v1",
            "deposed": False, "suspended": False, "observed": None,
        })  # fmt: skip
    by_name = {row["name"]: row for row in rows}
    undefined = set()
    for number, fault in enumerate(found):
        row = by_name[fault.name]
        if fault.column == "inputs":
            row["inputs"] = [fault.value] * len(row["inputs"])
        elif fault.column == "lost":
            row["requires"] = [base + 99 for _ in row["requires"]]
        elif fault.column == "gone" and fault.value == "row":
            rows = [other for other in rows if other["name"] != fault.name]
        elif fault.column == "gone":
            undefined.add(fault.name)
        elif fault.column == "deposed":
            rows.append(row | {"id": base + 50 + number, "deposed": True})
            if fault.value == "required":
                by_name["d"]["requires"] = [base + 50 + number for _ in by_name["d"]["requires"]]
        else:
            row[fault.column] = fault.value
    for row in rows:
        db.execute(INSERT_ROW, row)
    for name, needs in REQUIRES.items():
        if name not in undefined:
            type_ = by_name[name]["type"]
            values = {"stack_id": stack_id, "name": name, "digest": digest_of(name), "requires": list(needs)}
            db.execute(INSERT_DEFINITION, values | {"body": f'{{"type": "{type_}"}}'})


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)  # the examples share a database and use a stack id each
@given(found=st.lists(faults, max_size=3))
def test_a_repair_visits_the_same_resources_as_a_plan_of_the_whole_stack(
    world: World, found: list[Fault]
) -> None:
    stack_id = next(STACK_IDS)
    db = world.database.check_connection(durable=False)
    write(db, stack_id, found)
    names = repair_diff.unsettled(db, stack_id, (), [ALWAYS], 100)
    assert len(names) == len(set(names))
    planned = DefinitionsInForce(repair_diff.definitions(db, stack_id, names)).desired
    rows = repair_diff.rows(db, stack_id, names)
    required = {id_ for row in rows for id_ in row.requires} - {row.id for row in rows}
    settled = repair_diff.rows_of(db, stack_id, required)
    part = plan_changes(rows, planned, _always(planned), settled=settled)

    every = DefinitionsInForce(repair_diff.definitions(db, stack_id, list(REQUIRES))).desired
    whole = plan_changes(bulk_writer.rows(db, stack_id), every, _always(every))
    assert summary(part) == summary(whole)
    if all(fault.column == "observed" and fault.value == "ready" for fault in found):
        assert names == []


def _always(desired: dict[str, DesiredRow]) -> set[str]:
    return {name for name, row in desired.items() if row.resource_type == ALWAYS}


def summary(changes: Changes) -> tuple[Any, ...]:
    return (
        changes.visited, changes.dirty, changes.restored, changes.deposed_by, changes.never_created,
        [row.id for row in changes.cleanups],
        {name: changes.current[name].id for name in changes.visited if name in changes.current},
    )  # fmt: skip


STACK_IDS = count(FIRST)
