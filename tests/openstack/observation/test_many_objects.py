"""Damage among many objects in several projects, for some minutes; the sizes are those of the environment.

    OBSERVED_SERVERS=10000 OBSERVED_VOLUMES=500 OBSERVED_STACKS=100 OBSERVED_MINUTES=10

A minute has two rounds; the lists of its first round are faulty in most minutes. The test also measures what
quiet rounds cost.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from typing import Final

import orjson
import pytest

from orchestrator.security.encryption import Cipher, new_key
from orchestrator.simulated.cloud import SimulatedCloud
from tests.openstack.acceptance.installation import open_cloud
from tests.openstack.observation import fleet
from tests.openstack.observation.damage import DAMAGE, VOLUME
from tests.openstack.observation.ledger import Ledger, Target, targets
from tests.openstack.observation.observed_world import LISTS, ObservedWorld
from tests.openstack.observation.places import is_apart, place_of
from tests.openstack.observation.projects import add_project
from tests.scenarios.warm_database import Kept

SERVERS: Final = int(os.environ.get("OBSERVED_SERVERS", "10000"))
VOLUMES: Final = int(os.environ.get("OBSERVED_VOLUMES", "500"))
STACKS: Final = int(os.environ.get("OBSERVED_STACKS", "100"))
MINUTES: Final = int(os.environ.get("OBSERVED_MINUTES", "10"))
PROJECTS: Final = ("one", "two", "three")
DAMAGED: Final = 0.01  # of all objects, per minute
MODES: Final = ("heal", "heal", "heal", "report", "ask")  # of the stacks, in turn
CALLS: Final = 12  # of a quiet round of 10,000 servers
SHARE: Final = 0.05  # of a core
GROWTH: Final = 1_000_000  # bytes of the database in a quiet hour
ANSWERS: Final = ({}, {"status": 503}, {"delay": 0.2}, {"truncate": 0.5}, {"drop": True})

Worlds = dict[str, ObservedWorld]


@pytest.fixture
def worlds(kept_stacks: Kept, own_cloud: SimulatedCloud) -> Iterator[Worlds]:
    """A world per project; they share the database, the keys and the cloud."""
    kept_stacks.empty()
    made: Worlds = {}
    cipher = Cipher([new_key()])
    for name in PROJECTS:
        add_project(own_cloud, name)
        login = {"OS_AUTH_URL": own_cloud.auth_url, "OS_PASSWORD": own_cloud.password}
        login |= {"OS_PROJECT_NAME": name, "OS_REGION_NAME": "RegionOne"}
        made[name] = ObservedWorld(kept_stacks.url, own_cloud, open_cloud(login, name), cipher)
    yield made
    for world in made.values():
        world.close()


def build(worlds: Worlds) -> dict[str, str]:
    """Create all stacks; return their policies by name."""
    files = {fleet.MEMBER_FILE: orjson.dumps(fleet.member()).decode()}
    servers, volumes = max(2, SERVERS // STACKS), max(2, VOLUMES // STACKS)
    modes = {}
    for number in range(STACKS):
        world = worlds[PROJECTS[number % len(PROJECTS)]]
        name, mode = f"s{number}", MODES[number % len(MODES)]
        is_group = number % 4 == 3
        template = fleet.scaled(servers) if is_group else fleet.fleet(servers, volumes)
        uuid = world.submit(name, template, files=files if is_group else {})
        world.settle(uuid, "CREATE_COMPLETE")
        world.policy(mode, stack=name)
        modes[name] = mode
    return modes


def inflict(world: ObservedWorld, ledger: Ledger, modes: dict[str, str], dice: random.Random) -> None:
    """Damage a share of all objects, each place once."""
    everything = targets(world.rows)
    places = {place_of(entry.target) for entry in ledger.entries}
    by_stack: dict[str, list[Target]] = {}
    for target in everything:
        by_stack.setdefault(target.root, []).append(target)
    free = [t for t in everything if place_of(t) not in places and is_apart(world.cloud, t)]
    dice.shuffle(free)
    volumes_left = max(1, VOLUMES // 100)
    for target in free:
        kinds = [damage for damage in DAMAGE if damage.type == target.type]
        if not kinds or place_of(target) in places:
            continue
        if target.type == VOLUME:
            volumes_left -= 1
            if volumes_left < 0:
                continue
        places.add(place_of(target))
        damage = dice.choice(kinds)
        ledger.add(target, damage, modes[target.root], by_stack[target.root])
        damage.inflict(world.cloud, target.physical_id)
        if len(places) >= DAMAGED * len(everything) * (1 + len(ledger.minutes)):
            break
    ledger.minutes.append(len(ledger.entries))


@pytest.mark.long
@pytest.mark.timeout(4 * 3_600)
def test_damage_among_many_objects_is_found_and_repaired_entry_by_entry(worlds: Worlds):
    modes, dice = build(worlds), random.Random(3)
    first = worlds[PROJECTS[0]]
    ledger = Ledger(first.rows)
    for _ in range(3):  # the first rounds of the project and of this process are no quiet ones
        first.discover()
        first.round()
    assert_quiet_rounds_are_cheap(first)
    for minute in range(MINUTES):
        inflict(first, ledger, modes, dice)
        answer = ANSWERS[minute % len(ANSWERS)]
        if answer:
            first.cloud.faults.set({"api": [{"method": "GET", "path": path, **answer} for path in LISTS]})
        first.round()
        first.cloud.faults.set({})
        for _ in range(2):  # an error is observed twice
            first.round()
        missed = [text for text in ledger.contradictions() if "expected" not in text]
        assert not missed, "\n".join(missed)
        first.heal()
    contradictions = ledger.contradictions()
    assert not contradictions, "\n".join(contradictions)


def assert_quiet_rounds_are_cheap(world: ObservedWorld) -> None:
    """Check requests, processor time and the growth of the database."""
    before = world.cloud.requests.total
    size = world.rows("SELECT pg_database_size(current_database()) AS bytes")[0].bytes
    spent = time.thread_time()
    world.round("lists")
    seconds = time.thread_time() - spent
    requests = world.cloud.requests.total - before
    allowed = CALLS * max(1.0, SERVERS / 10_000) + 10 * len(PROJECTS)  # small lists, and tokens
    assert requests <= allowed, f"{requests} requests of a quiet round"
    assert seconds / 60 <= SHARE, f"{seconds:.2f} s of processor time in a quiet round"
    for _ in range(10):
        world.round("lists")
    grown = world.rows("SELECT pg_database_size(current_database()) AS bytes")[0].bytes - size
    assert grown <= GROWTH, f"{grown:,} bytes in 11 quiet rounds"
