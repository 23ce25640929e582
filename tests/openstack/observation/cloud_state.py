"""The objects of the simulated cloud before and after: an object without damage and repair is unchanged."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable

import orjson

from simulated_openstack.cloud import SimulatedCloud
from tests.openstack.observation.damage import ATTACHMENT, PORT, SERVER
from tests.openstack.observation.ledger import Ledger, Target
from tests.openstack.observation.places import Place, place_of

SERVICES = ("nova.", "neutron.", "cinder.")
RECREATING = ("recreate", "replace")


class CloudState:
    """The objects of the cloud at a time."""

    def __init__(self, cloud: SimulatedCloud, targets: Iterable[Target]) -> None:
        """Remember all objects, and each place's."""
        self._cloud = cloud
        self._before = self._digests()
        self._places: dict[Place, set[str]] = {}
        for target in targets:
            self._places.setdefault(place_of(target), set()).add(target.physical_id)

    def contradictions(self, ledger: Ledger) -> list[str]:
        """Return the objects that were changed without need, and numbers of new objects that do not belong to
        the repairs.
        """
        places = {place_of(entry.target) for entry in ledger.entries}
        touched = {id_ for place in places for id_ in self._places[place]}
        touched |= {id_ for entry in ledger.entries for id_ in self._servers_of(entry.target)}
        after = self._digests()
        found = [
            f"changed without need: {key}"
            for key, digest in self._before.items()
            if key[1] not in touched and after.get(key) != digest
        ]
        new = Counter(kind for kind, id_ in after if (kind, id_) not in self._before)
        expected = Counter(
            entry.target.type
            for entry in ledger.entries
            if entry.repair in RECREATING and entry.target.type in (SERVER, PORT)
        )
        for kind, type_ in (("nova.server", SERVER), ("neutron.port", PORT)):
            if new[kind] != expected[type_]:
                found.append(f"{new[kind]} new objects of {kind} for {expected[type_]} repairs")
        return found

    def _servers_of(self, target: Target) -> Iterable[str]:
        """Yield the server of a detached volume."""
        if target.type == ATTACHMENT:
            number = target.name.removeprefix("attachment")
            yield from (
                item
                for place, ids in self._places.items()
                if place[0] == target.stack_id and place[1].startswith("server")
                for item in ids
                if number
            )

    def _digests(self) -> dict[tuple[str, str], bytes]:
        self._cloud.schedule.run_due()
        return {
            (kind, row["id"]): hashlib.blake2b(orjson.dumps(row, option=orjson.OPT_SORT_KEYS)).digest()
            for kind, table in self._cloud.state._tables.items()
            if kind.startswith(SERVICES)
            for row in table
        }
