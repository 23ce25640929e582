"""A copied stack has the rows and objects of a created stack, apart from ids, own names and times."""

from __future__ import annotations

import re
from typing import Any, Final

import orjson
import pytest

from tests.openstack.observation import fleet
from tests.openstack.observation.copies import TABLES, TREE, Prototype, objects_of
from tests.openstack.observation.damage import DAMAGE, SERVER
from tests.openstack.observation.ledger import targets
from tests.openstack.observation.observed_world import ObservedWorld

FILES: Final = {fleet.MEMBER_FILE: orjson.dumps(fleet.member()).decode()}
# Numbers and texts that differ between two created stacks.
OWN: Final = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b[0-9a-f]{24,64}\b|\b[0-9a-z]{12}\b"
    r"|\\\\x[0-9a-f]{24,}|instance-[0-9a-f]{8}"
    r"|fa:16:3e(?::[0-9a-f]{2}){3}|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.0-9]*(?:\+00:00|Z)?|r-[0-9a-f]{8}"
)


@pytest.mark.parametrize("template", [fleet.fleet(2, 2), fleet.scaled(2)])
def test_a_copied_stack_is_as_a_created_one(observed: ObservedWorld, template: dict[str, Any]):
    earlier = objects_of(observed)
    observed.settle(observed.submit("original", template, files=FILES), "CREATE_COMPLETE")
    prototype = Prototype(observed, "original", earlier)
    observed.settle(observed.submit("compared", template, files=FILES), "CREATE_COMPLETE")
    known = objects_of(observed)

    prototype.copy("copied")

    copied, compared = _rows(observed, "copied"), _rows(observed, "compared")
    for table, rows in compared.items():
        assert len(copied[table]) == len(rows)
        for mine, theirs in zip(copied[table], rows, strict=True):
            assert {key: value for key, value in mine.items() if value != theirs[key]} == {}, (table, theirs)
    copies = objects_of(observed) - known
    assert sorted(kind for kind, _ in copies) == sorted(kind for kind, _ in prototype.objects)


def test_a_copied_stack_is_in_step_repaired_and_deleted(observed: ObservedWorld):
    earlier = objects_of(observed)
    observed.settle(observed.submit("original", fleet.fleet(2, 2)), "CREATE_COMPLETE")
    known = objects_of(observed)
    Prototype(observed, "original", earlier).copy("copied")
    observed.discover()
    observed.round()
    assert observed.counts("copied") == observed.counts("original")
    observed.changes.clear()
    observed.update("copied", fleet.fleet(2, 2)["resources"])
    observed.deliver_all()
    assert not observed.changes
    observed.delete("copied")
    observed.deliver_all()
    assert objects_of(observed) == known


def test_a_copied_group_has_reached_its_template(observed: ObservedWorld):
    """A repair of a member gives a child stack a new revision only if its template is not as desired."""
    earlier = objects_of(observed)
    observed.settle(observed.submit("original", fleet.scaled(2), files=FILES), "CREATE_COMPLETE")
    Prototype(observed, "original", earlier).copy("copied")
    observed.policy("heal")
    observed.discover()
    observed.round()
    mine = [target for target in targets(observed.rows) if target.root == "copied"]
    lost = next(target for target in mine if target.type == SERVER)
    before = _revisions(observed, "copied")
    next(damage for damage in DAMAGE if (damage.type, damage.kind) == (SERVER, "deleted")).inflict(
        observed.cloud, lost.physical_id
    )
    observed.round()

    observed.heal()

    assert lost.physical_id not in {target.physical_id for target in targets(observed.rows)}
    assert _revisions(observed, "copied") == before


def _revisions(world: ObservedWorld, name: str) -> dict[int, int]:
    """Return the revision of each stack of a tree."""
    query = f"SELECT id, revision_id FROM stack WHERE id IN ({TREE})"
    return dict(world.db.execute(query, {"root": world.stack_row(name).id}))


def _rows(world: ObservedWorld, name: str) -> dict[str, list[Any]]:
    """Return the rows of a stack with numbers in place of its ids."""
    root = world.stack_row(name).id
    found: dict[str, list[Any]] = {}
    seen: dict[str, str] = {}
    for table, (column, references) in TABLES.items():
        query = f"SELECT row_to_json(t)::text FROM {table} t WHERE {column} IN ({TREE})"
        rows = [orjson.loads(text) for (text,) in world.db.execute(query, {"root": root})]
        rows.sort(
            key=lambda row: (
                row.get("depth") or 0,
                row.get("name") or "",
                row.get("parent_resource") or "",
                row["id"],
            )
        )
        for row in rows:
            for column_ in {*references, *(("first_event",) if table == "revision" else ())}:
                row[column_] = (
                    row[column_] is None if not isinstance(row[column_], list) else len(row[column_])
                )
        text = orjson.dumps(rows).decode().replace(name, "NAME")
        found[table] = orjson.loads(OWN.sub(lambda match: seen.setdefault(match[0], "OWN"), text))
    return found
