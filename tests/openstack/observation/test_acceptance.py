"""Damage on the simulated cloud, its verdicts and its repairs, entry by entry."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, Final

import orjson
import pytest

from tests.openstack.observation import fleet
from tests.openstack.observation.damage import DAMAGE, PORT, Damage
from tests.openstack.observation.ledger import Ledger, targets
from tests.openstack.observation.observed_world import LISTS, ObservedWorld
from tests.openstack.observation.places import is_apart, place_of

KINDS_AT_ONCE = 3
MODES = {"healed": "heal", "reported": "report", "asked": "ask", "group": "heal"}


ALL: Final = {
    "healed": fleet.fleet(10, 12),
    "reported": fleet.fleet(9, 10),
    "asked": fleet.fleet(9, 10),
    "group": fleet.scaled(8),
}


def build(world: ObservedWorld, stacks: Mapping[str, Any] = ALL) -> None:
    """Create the stacks and their policies, and observe them twice."""
    files = {fleet.MEMBER_FILE: orjson.dumps(fleet.member()).decode()}
    uuids = [
        world.submit(name, template, files=files if name == "group" else {})
        for name, template in stacks.items()
    ]
    for uuid in uuids:
        world.settle(uuid, "CREATE_COMPLETE")
    for stack in stacks:
        world.policy(MODES[stack], stack=stack)
    world.discover()
    for _ in range(2):
        world.round()


def inflict(world: ObservedWorld, ledger: Ledger, damage: Damage, dice: random.Random) -> None:
    """Inflict a kind of damage on an object of each stack, each object once."""
    everything = targets(world.rows)
    busy = {entry.target.key for entry in ledger.entries}
    places = {place_of(entry.target) for entry in ledger.entries}
    for stack, mode in MODES.items():
        mine = [target for target in everything if target.root == stack]
        free = [
            target
            for target in mine
            if target.type == damage.type
            and target.key not in busy
            and place_of(target) not in places
            and is_apart(world.cloud, target)
        ]
        if free:
            target = dice.choice(free)
            ledger.add(target, damage, mode, mine)
            damage.inflict(world.cloud, target.physical_id)


def test_each_damage_is_reported_and_repaired_as_the_policy_says(observed: ObservedWorld):
    build(observed)
    ledger, dice = Ledger(observed.rows), random.Random(1)
    assert_agrees(ledger)
    kinds = list(DAMAGE)
    dice.shuffle(kinds)
    for first in range(0, len(kinds), KINDS_AT_ONCE):
        for damage in kinds[first : first + KINDS_AT_ONCE]:
            inflict(observed, ledger, damage, dice)
        for _ in range(2):
            observed.round()
        assert_agrees(ledger, repairs=False)
        untouched = {target.physical_id for target in targets(observed.rows)} - _touchable(observed, ledger)
        observed.changes.clear()
        observed.heal()
        assert_agrees(ledger)
        changes = [request for request in observed.changes if "os-volume_attachments" not in request]
        assert not [request for request in changes if untouched & set(request.split("/"))]


def _touchable(world: ObservedWorld, ledger: Ledger) -> set[str]:
    """Return the objects that repairs may change: the damaged ones, and servers and volumes next to them."""
    places = {place_of(entry.target) for entry in ledger.entries if entry.repair}
    return {target.physical_id for target in targets(world.rows) if place_of(target) in places}


def test_a_pending_repair_is_carried_out_after_its_approval_only(observed: ObservedWorld):
    build(observed, {"healed": fleet.fleet(10, 12)})
    ledger, dice = Ledger(observed.rows), random.Random(2)
    for damage in DAMAGE:
        if damage.kind == "deleted" and damage.type != PORT:
            inflict(observed, ledger, damage, dice)
    observed.round()
    observed.heal()
    assert {row.status for row in observed.rows("SELECT status FROM repair")} == {"pending"}
    [server] = observed.rows("SELECT * FROM repair WHERE type = 'OS::Nova::Server'")
    observed.answer(server.uuid, "approve")
    observed.heal()
    assert_agrees(ledger)
    assert observed.ids()[server.name] in {row["id"] for row in observed.cloud.nova.servers.table}
    assert observed.counts("healed") == {"IN_SYNC": 40, "MISSING": 1}


FAULTY_LISTS = {
    "an error": {"status": 503},
    "no answer": {"drop": True},
    "half of the objects": {"truncate": 0.5},
    "none of the objects": {"truncate": 0.0},
    "a slow answer": {"delay": 0.5},
}


@pytest.mark.parametrize("answer", FAULTY_LISTS.values(), ids=FAULTY_LISTS)
def test_faulty_lists_prove_nothing_about_objects(observed: ObservedWorld, answer: dict[str, Any]):
    build(observed, {"healed": fleet.fleet(4, 2)})
    ledger = Ledger(observed.rows)
    observed.changes.clear()
    observed.cloud.faults.set({"api": [{"method": "GET", "path": path, **answer} for path in LISTS]})
    for _ in range(2):
        observed.round()
    observed.heal()
    observed.cloud.faults.set({})
    assert_agrees(ledger)
    observed.round()
    assert set(observed.counts("healed")) == {"IN_SYNC"}
    assert observed.changes == []


def test_a_cloud_that_loses_everything_and_shows_it_again_is_not_repaired(observed: ObservedWorld):
    build(observed, {"healed": fleet.fleet(6, 6)})
    observed.changes.clear()
    observed.hide_everything()
    for _ in range(2):
        observed.round()
    observed.heal()
    assert observed.counts("healed")["MISSING"] >= 12
    assert {row.status for row in observed.rows("SELECT status FROM repair")} == {"pending"}
    observed.cloud.faults.set({})
    for _ in range(2):
        observed.round()
    observed.heal()
    assert set(observed.counts("healed")) == {"IN_SYNC"}
    assert observed.rows("SELECT 1 FROM repair WHERE started_at IS NOT NULL") == []
    assert observed.changes == []


def test_a_revoked_trust_makes_every_verdict_unknown_until_the_next_update(observed: ObservedWorld):
    template = fleet.fleet(2, 2)
    build(observed, {"healed": template})
    trusts = observed.cloud.keystone.delegations.trusts
    for trust in list(trusts):
        trusts.remove(trust["id"])
    for _ in range(3):
        observed.round()
    observed.heal()
    assert set(observed.counts("healed")) == {"UNKNOWN"}
    told = observed.rows("SELECT reason FROM event WHERE reason LIKE '%credential of the stack is refused%'")
    assert len(told) == 1
    assert observed.rows("SELECT 1 FROM repair") == []
    template["resources"]["server0"]["properties"]["metadata"] = {"role": "again"}
    observed.update("healed", template["resources"])
    observed.settle(str(observed.stack_row("healed").uuid), "UPDATE_COMPLETE")
    observed.discover()
    observed.round()
    assert set(observed.counts("healed")) == {"IN_SYNC"}


def assert_agrees(ledger: Ledger, *, repairs: bool = True) -> None:
    """Compare the ledger with the verdicts, and with the repairs."""
    found = [text for text in ledger.contradictions() if repairs or "expected" not in text]
    assert not found, "\n".join(found)
