"""Kill random processes of a running installation, and measure how long each kill was felt."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import psycopg

from tests.e2e.running import Up

RECOVERY_SECONDS = 60.0

# Weight of each role among the killed processes, and its recognition by command line.
VICTIMS: dict[str, tuple[int, Callable[[str], bool]]] = {
    "check worker": (4, lambda line: "-n check" in line),
    "provider worker": (5, lambda line: "-n provider" in line),
    "api": (3, lambda line: "gunicorn" in line),
    "planner": (3, lambda line: "orchestrator.operations.planner_process" in line),
    "intake": (2, lambda line: "multiprocessing" in line),  # parses large bodies
    "database connection": (2, lambda line: line.startswith("postgres: orchestrator ")),
    "database helper": (1, lambda line: line.startswith("postgres: ") and "orchestrator " not in line),
    "database": (1, lambda line: "/postgres -D" in line),
    "broker": (2, lambda line: "valkey-server" in line),
}


@dataclass(slots=True)
class Kill:
    """A killed process, and the leases it held."""

    at: float  # monotonic
    victim: str
    actions: Counter[str] = field(default_factory=Counter)  # in progress, by name
    leases: int = 0  # that were held
    freed_seconds: float | None = None  # until none of those was held any more
    probe_seconds: float | None = None  # until a stack asked for after it was complete
    quiet_seconds: float | None = None  # the same, from the last kill there was before that

    @property
    def is_over(self) -> bool:
        """Whether the stack asked for after it is complete."""
        return self.probe_seconds is not None

    @property
    def late(self) -> bool:
        """Return whether recovery took too long; leases hit again by a later kill belong to that kill."""
        if self.freed_seconds is None or self.quiet_seconds is None:
            return True
        return self.freed_seconds > RECOVERY_SECONDS or self.quiet_seconds > RECOVERY_SECONDS


class Killer:
    """Selects and kills; a thread per kill follows the leases held at that moment."""

    def __init__(self, up: Up, database_url: str, dice: random.Random) -> None:
        self.up, self.url, self.dice = up, database_url, dice
        self.kills: list[Kill] = []
        self._threads: list[threading.Thread] = []

    def strike(self) -> Kill | None:
        """Kill a process; None if it had already ended."""
        existing = self.up.children()
        among = {
            name: pids
            for name, (_, is_one) in VICTIMS.items()
            if (pids := sorted(pid for pid, line in existing.items() if is_one(line)))
        }
        if not among:
            return None
        name = self.dice.choices(list(among), [VICTIMS[name][0] for name in among])[0]
        kill = Kill(0.0, name)
        before = self._inspect()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.dice.choice(among[name]), signal.SIGKILL)
            kill.at = time.monotonic()
            self.kills.append(kill)
            held: set[tuple[int, int]] = set()
            if before is not None:
                held, kill.actions = before
            kill.leases = len(held)
            thread = threading.Thread(target=self._follow, args=(kill, held), daemon=True)
            thread.start()
            self._threads.append(thread)
            return kill
        return None

    @property
    def under_way(self) -> int:
        """How many kills are not got over yet."""
        return sum(not kill.is_over for kill in self.kills)

    def got_over(self, kill: Kill) -> None:
        """Note that the stack asked for after a kill is complete."""
        now = time.monotonic()
        kill.quiet_seconds = now - max(item.at for item in self.kills if item.at <= now)
        kill.probe_seconds = now - kill.at

    def wait(self) -> None:
        """Wait until every kill has been got over, or for long enough."""
        for thread in self._threads:
            thread.join(3 * RECOVERY_SECONDS)

    def _inspect(self) -> tuple[set[tuple[int, int]], Counter[str]] | None:
        """Return the leases held just now and the actions in progress; None without a database."""
        with contextlib.suppress(psycopg.Error), psycopg.connect(self.url, connect_timeout=2) as db:
            held = db.execute("SELECT id, lease FROM graph_node WHERE state = 'checking'").fetchall()
            actions = db.execute("SELECT action FROM stack WHERE status = 'IN_PROGRESS'").fetchall()
            return {(row[0], row[1]) for row in held}, Counter(row[0] for row in actions)
        return None

    def _follow(self, kill: Kill, held: set[tuple[int, int]]) -> None:
        while held and time.monotonic() - kill.at < 3 * RECOVERY_SECONDS:
            time.sleep(0.2)
            now = self._inspect()
            if now is not None:
                held = held & now[0]
        if not held:
            kill.freed_seconds = time.monotonic() - kill.at
