"""Write an adopted stack's physical ids and data to its planned rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.engine.check.child_status import ADOPTED_KEY
from orchestrator.json_types import JsonMapping
from orchestrator.operations.planning.definitions import PlannedDefinitions
from orchestrator.security.encryption import Cipher
from orchestrator.store.planning import bulk_writer, plan_inputs
from orchestrator.store.planning.bulk_writer import PlanTarget

SLICE: Final = 5_000  # maximum rows of each table per transaction


class AdoptedResources:
    """The resources of an adopted stack, by name: id, data, metadata, and whether these are secret."""

    def __init__(self, cipher: Cipher, sealed: bytes | None) -> None:
        """`sealed` is the revision's record of the adoption."""
        self.cipher = cipher
        self.resources: JsonMapping = cipher.open(sealed) if sealed else {}

    def write(self, db: Connection[TupleRow], places: Mapping[str, tuple[int, int]]) -> None:
        """Write the adopted state of some new resources; `places` has the ids of row and definition."""
        rows = []
        for name, (row, definition) in places.items():
            if adopted := self.resources.get(name):
                state = {key: adopted[key] for key in ("data", "metadata", "secret")}
                if "nested" in adopted:
                    state["data"] = {**state["data"], ADOPTED_KEY: adopted["nested"]}
                rows.append((row, adopted["resource_id"], self.cipher.seal(state), definition))
        plan_inputs.write_adopted(db, rows)

    def apply_interrupted_adoption(
        self, db: Connection[TupleRow], target: PlanTarget, planned: PlannedDefinitions, number: int
    ) -> None:
        """Write the rows that an interrupted adoption has not written, as of its revision `number`.

        They are adopted unchanged before a newer plan compares them. No node visits them yet.
        """
        existing = {row.name for row in bulk_writer.rows(db, target.stack_id)}
        names = [name for name in planned.desired if name in self.resources and name not in existing]
        then = replace(target, revision_number=number)
        for start in range(0, len(names), SLICE):
            part = names[start : start + SLICE]
            with bulk_writer.slice_of(db, target):
                rows = bulk_writer.new_ids(db, "resource", len(part))
                definitions = bulk_writer.new_ids(db, "resource_definition", len(part))
                places = dict(zip(part, zip(rows, definitions, strict=True), strict=True))
                resources = [(places[name][0], name, *planned.types_of(name)) for name in part]
                bulk_writer.copy_resources(db, then, resources)
                bulk_writer.copy_definitions(
                    db, then, (planned.definition_row(name, places[name][1]) for name in part)
                )
                self.write(db, places)
