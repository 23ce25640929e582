"""What an adopted stack takes over, told to the rows that are to be it while they are planned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.engine.check.child_status import ADOPTED
from orchestrator.operations.planning.definitions import PlannedDefinitions
from orchestrator.security.encryption import Cipher
from orchestrator.store.planning import bulk_writer
from orchestrator.store.planning.bulk_writer import PlanTarget

SLICE: Final = 5_000  # rows of each table a transaction writes


class AdoptedResources:
    """The things of one adopted stack: name to id, data and metadata, and whether those are secret."""

    def __init__(self, cipher: Cipher, sealed: bytes | None) -> None:
        """Take them as the revision has them."""
        self.cipher = cipher
        self.things: Mapping[str, Any] = cipher.open(sealed) if sealed else {}

    def write(self, db: Connection[TupleRow], places: Mapping[str, tuple[int, int]]) -> None:
        """Write them for some new resources: name to the ids of its row and its definition."""
        rows = []
        for name, (row, definition) in places.items():
            if thing := self.things.get(name):
                kept = {key: thing[key] for key in ("data", "metadata", "secret")}
                if "nested" in thing:
                    kept["data"] = {**kept["data"], ADOPTED: thing["nested"]}
                rows.append((row, thing["resource_id"], self.cipher.seal(kept), definition))
        bulk_writer.take_over(db, rows)

    def apply_interrupted_adoption(
        self, db: Connection[TupleRow], target: PlanTarget, drafts: PlannedDefinitions, number: int
    ) -> None:
        """Write the rows that the adoption did not come to, as revision `number` has them.

        So they are taken over as they are before anything else is made of them. Nothing visits them yet.
        """
        have = {row.name for row in bulk_writer.rows(db, target.stack_id)}
        names = [name for name in drafts.wanted if name in self.things and name not in have]
        then = replace(target, revision_number=number)
        for start in range(0, len(names), SLICE):
            part = names[start : start + SLICE]
            with bulk_writer.slice_of(db, target):
                rows = bulk_writer.new_ids(db, "resource", len(part))
                definitions = bulk_writer.new_ids(db, "resource_definition", len(part))
                places = {name: place for name, *place in zip(part, rows, definitions, strict=True)}
                made = [(places[name][0], name, *drafts.types_of(name)) for name in part]
                bulk_writer.copy_resources(db, then, made)
                bulk_writer.copy_definitions(
                    db, then, (drafts.definition_row(name, places[name][1]) for name in part)
                )
                self.write(db, {name: (row, definition) for name, (row, definition) in places.items()})
