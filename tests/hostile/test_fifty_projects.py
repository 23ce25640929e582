"""Fifty projects on a complete server: one attacks, the other projects work modestly and keep their speed."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

import pytest

from tests.e2e.running import Up
from tests.hostile import attacks
from tests.hostile.flood import Client, Flood
from tests.hostile.minute import (
    HANDLE,
    SECONDS,
    Memory,
    Project,
    Times,
    require_kept,
    require_recovered,
    summary,
)

pytestmark = pytest.mark.long

MODEST: Final = 49
PAUSE_SECONDS: Final = 10.0  # between the requests of a modest project
RESOURCES: Final = 2
WARM_UP_SECONDS: Final = 15.0


class Modest:
    """Projects that create a stack, and list and show their stacks now and then."""

    def __init__(self, projects: Sequence[Project]) -> None:
        self.projects = projects

    def work(self, seconds: float) -> Times:
        """Work in all projects; return the seconds of each kind of request."""
        times: Times = {}
        lock = threading.Lock()

        def work_in(index: int) -> None:
            time.sleep(index * PAUSE_SECONDS / len(self.projects))
            taken = self.projects[index].work(seconds, pause=PAUSE_SECONDS, rounds=2, resources=RESOURCES)
            with lock:
                for kind, of in taken.items():
                    times.setdefault(kind, []).extend(of)

        with ThreadPoolExecutor(len(self.projects)) as pool:
            list(pool.map(work_in, range(len(self.projects))))
        return times


@pytest.fixture(scope="module")
def modest(token_up: Up) -> Modest:
    return Modest([Project(token_up, f"modest{number}") for number in range(MODEST)])


def floods(attacker: Project) -> dict[str, tuple[Client, int]]:
    """Return the attacks."""
    outputs = attacker.create("outputs", attacks.nested_outputs())
    expensive = attacker.create("expensive", attacks.expensive_outputs(time.monotonic_ns()))
    handle = attacker.create("handle", HANDLE)
    stacks = attacker.stacks_path
    return {
        "nested outputs": (partial(attacks.read, outputs), 24),
        "large signals": (partial(attacks.large_signals, f"{handle}/resources/handle"), 8),
        "large validations": (partial(attacks.large_validations, attacker.name), 20),
        "foreign pages": (partial(attacks.foreign_pages, stacks), 6),
        "large values": (partial(attacks.large_values, stacks), 4),
        "many stacks": (partial(attacks.many_stacks, stacks), 8),
        "large stacks": (partial(attacks.large_stacks, stacks), 6),
        "expensive expressions": (partial(attacks.expensive_expressions, attacker.name, expensive), 12),
    }


def work_during(attacker: Project, modest: Modest, seconds: float) -> Times:
    """Let the modest projects work during each attack, of `seconds`; return the times of all attacks."""
    times: Times = {}
    for name, (client, clients) in floods(attacker).items():
        with Flood(attacker.port, client, clients, attacker.headers) as flood:
            taken = modest.work(seconds)
        print(name, summary(taken), flood.statuses)
        for kind, of in taken.items():
            times.setdefault(kind, []).extend(of)
    return times


@pytest.mark.timeout(1800)
def test_forty_nine_projects_keep_their_speed(modest: Modest, attacker: Project) -> None:
    modest.work(WARM_UP_SECONDS)
    idle = modest.work(SECONDS / 2)
    print("idle", summary(idle))
    with Memory(attacker.up) as memory:
        attacked = work_during(attacker, modest, SECONDS)
    print("attacked", summary(attacked))
    require_recovered(attacker)
    after = modest.work(SECONDS / 2)
    print("after", summary(after))
    require_kept(idle, attacked, after)
    memory.require_bounded()
