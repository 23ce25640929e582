"""Damage among many objects in several projects, for some minutes; the sizes come from the environment.

    OBSERVED_SERVERS=10000 OBSERVED_VOLUMES=500 OBSERVED_STACKS=100 OBSERVED_MINUTES=10

In most minutes the lists of the first round are faulty, or all services are out of order for two minutes.
Each fault must then be found by the next round, an error and an absence after an outage by the second. The
test also measures what quiet rounds cost, and compares all objects of the cloud at the end with those at the
beginning.
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
from qa.acceptance.installation import open_cloud
from simulated_openstack.cloud import SimulatedCloud
from tests.openstack.observation import fleet
from tests.openstack.observation.cloud_state import CloudState
from tests.openstack.observation.copies import Prototype, objects_of
from tests.openstack.observation.damage import DAMAGE, VOLUME
from tests.openstack.observation.ledger import Ledger, Target, targets
from tests.openstack.observation.observed_world import LISTS, ObservedWorld
from tests.openstack.observation.places import is_apart, place_of
from tests.openstack.observation.projects import add_project
from tests.openstack.observation.report import Report
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
OUTAGE: Final[dict[str, object]] = {"status": 503}
OUTAGE_ROUNDS: Final = 4  # two minutes
QUIET_ROUNDS: Final = int(os.environ.get("OBSERVED_QUIET_ROUNDS", "60"))  # an hour
ANSWERS: Final[tuple[dict[str, object], ...]] = (
    {},
    {"drop": True},
    {"delay": 0.2},
    {"truncate": 0.5},
    OUTAGE,
)
INTERRUPTED: Final = ({"drop": True}, OUTAGE)  # after which a single observation proves no absence
SIZE: Final = "SELECT pg_database_size(current_database()) AS bytes"

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
    """Create all stacks: of each project and template once through the engine, then copies; return
    their policies by name.
    """
    files = {fleet.MEMBER_FILE: orjson.dumps(fleet.member()).decode()}
    servers, volumes = max(2, SERVERS // STACKS), max(2, VOLUMES // STACKS)
    modes: dict[str, str] = {}
    prototypes: dict[tuple[str, bool], Prototype] = {}
    for number in range(STACKS):
        project, is_group = PROJECTS[number % len(PROJECTS)], number % 4 == 3
        world, prototype = worlds[project], prototypes.get((project, is_group))
        if prototype is None:
            name = f"{project}{'group' if is_group else 'fleet'}"
            template = fleet.scaled(servers) if is_group else fleet.fleet(servers, volumes)
            earlier = objects_of(world)
            world.settle(world.submit(name, template, files=files if is_group else {}), "CREATE_COMPLETE")
            prototypes[project, is_group] = Prototype(world, name, earlier)
        else:
            name = f"s{number}"
            prototype.copy(name)
        modes[name] = MODES[number % len(MODES)]
        world.policy(modes[name], stack=name)
    worlds[PROJECTS[0]].db.execute("ANALYZE")
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
def test_damage_among_many_objects_is_found_and_repaired_entry_by_entry(
    worlds: Worlds, capsys: pytest.CaptureFixture[str]
):
    modes, dice = build(worlds), random.Random(3)
    first = worlds[PROJECTS[0]]
    ledger, report = Ledger(first.rows), Report(first, capsys)
    for _ in range(3):  # the first rounds of the project and of this process are not quiet
        first.discover()
        first.round()
    assert not ledger.contradictions()
    assert_quiet_rounds_are_cheap(first, report)
    state = CloudState(first.cloud, targets(first.rows))
    for minute in range(MINUTES):
        inflict(first, ledger, modes, dice)
        answer = ANSWERS[minute % len(ANSWERS)]
        with report.measured(f"minute {minute}, rounds with {answer or 'complete answers'}"):
            for _ in range(0 if not answer else OUTAGE_ROUNDS if answer == OUTAGE else 1):
                first.cloud.faults.set({"api": rules_of(answer)})
                first.round()
        first.cloud.faults.set({})
        with report.measured(f"minute {minute}, a round"):
            first.round()
        once = ("failed", "missing") if answer in INTERRUPTED else ("failed",)
        missed = [text for text in ledger.contradictions(settled=False, once=once) if "expected" not in text]
        assert not missed, "\n".join(missed)
        with report.measured(f"minute {minute}, the second round"):
            first.round()  # an error is observed twice
        missed = [text for text in ledger.contradictions() if "expected" not in text]
        assert not missed, "\n".join(missed)
        with report.measured(f"minute {minute}, repairs of {ledger.minutes[-1]} faults so far"):
            first.heal()
    contradictions = [*ledger.contradictions(), *state.contradictions(ledger)]
    assert not contradictions, "\n".join(contradictions)
    report.show(f"{ledger.minutes[-1]} faults: {ledger.outcome()}")


def rules_of(answer: dict[str, object]) -> list[dict[str, object]]:
    """Return the fault rules of an answer: an outage concerns all requests, others the lists."""
    if answer == OUTAGE:
        return [{"service": service, **answer} for service in ("nova", "neutron", "cinder")]
    return [{"method": "GET", "path": path, **answer} for path in LISTS]


def assert_quiet_rounds_are_cheap(world: ObservedWorld, report: Report) -> None:
    """Check requests, processor time and the growth of the database in an hour with a round a minute."""
    before = world.cloud.requests.total
    size = world.rows(SIZE)[0].bytes
    spent = time.thread_time()
    world.round("lists")
    seconds = time.thread_time() - spent
    requests = world.cloud.requests.total - before
    for _ in range(QUIET_ROUNDS - 1):
        world.round("lists")
    grown = world.rows(SIZE)[0].bytes - size
    report.show(
        f"a quiet round of {SERVERS} servers: {requests} requests, {seconds:.2f} s of processor time"
        f" ({seconds / 60:.2%} of a core); {QUIET_ROUNDS} rounds: the database grew by {grown:,} bytes"
    )
    allowed = CALLS * max(1.0, SERVERS / 10_000) + 10 * len(PROJECTS)  # small lists, and tokens
    assert requests <= allowed, f"{requests} requests of a quiet round"
    assert seconds / 60 <= SHARE, f"{seconds:.2f} s of processor time in a quiet round"
    assert grown <= GROWTH, f"{grown:,} bytes in {QUIET_ROUNDS} quiet rounds"
