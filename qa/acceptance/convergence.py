"""Damage by an administrator, killed workers and stopped services: each fault is found and repaired once.

    python -m qa.acceptance.convergence [--servers 100] [--volumes 20] [--minutes 8] [--seed 1]

`OPENSTACK_DIR` names a control plane; without it, the cloud is simulated and no service is stopped. The
script keeps a list of the damage, and compares it with the verdicts and repairs of the API entry by entry.
At the end the cloud must be as the template says. Exits with 1 otherwise.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import click
import httpx

from orchestrator.errors import ProviderError
from qa.acceptance import observed_stack
from qa.acceptance.administrator import DAMAGE, Damage
from qa.acceptance.background import working
from qa.acceptance.installation import Failed, Installation, chosen_directory, installation
from qa.acceptance.inventory import inventory
from tests import constants

INTERVAL_SECONDS: Final = 30.0
FOUND_SECONDS: Final = 2 * INTERVAL_SECONDS
MINUTE: Final = 60.0
KILL_SECONDS: Final = 15.0
END_SECONDS: Final = 1_800.0
PAGE: Final = 1_000
SERVICES: Final = (
    "",
    "nova-api",
    "",
    "neutron",
    "",
    "cinder-api",
    "nova-compute",
    "rabbit",
)  # stopped, in turn
WORKERS: Final = ("-n check", "-n provider")
SETTINGS: Final = constants.environment({"observation_interval_seconds": INTERVAL_SECONDS})
ENDED: Final = frozenset({"done", "failed", "declined", "superseded"})
AFTERMATH: Final = timedelta(minutes=2)  # agents report late after a stop of their service or of the messages
ATTEMPTS: Final = 2  # of a damage, whose request a stopped service can lose


class Entry(NamedTuple):
    """An injected damage."""

    damage: Damage
    resource: str
    physical_id: str
    at: datetime

    def __str__(self) -> str:
        return f"{self.resource} {self.damage.kind} ({self.physical_id})"


class Run:
    """A stack, its damage, and the verdicts and repairs of the orchestrator."""

    def __init__(self, on: Installation, directory: Path | None, dice: random.Random) -> None:
        """Do nothing yet."""
        self.on, self.directory, self.dice = on, directory, dice
        self.name = f"so-observed-{uuid.uuid4().hex[:6]}"
        self.entries: list[Entry] = []
        self.touched: set[tuple[str, str]] = set()  # prefix and number of resources
        self.outages: list[tuple[datetime, datetime]] = []
        self.kills = 0

    def create(self, servers: int, volumes: int) -> None:
        """Create the stack; its faults are healed."""
        template = observed_stack.template(servers, volumes)
        self.on.request("POST", "/stacks", json={"stack_name": self.name, "template": template})
        status = self.on.wait(self.name, END_SECONDS)
        if status != "CREATE_COMPLETE":
            raise Failed(f"{self.name}: {status}: {self.on.causes(self.name)}")
        body = {"kind": "policy", "mode": "heal", "stack": self.name}
        self.on.request("POST", "/observation_policies", json=body)

    def ids(self) -> dict[str, str]:
        """Return the physical ids by the names of the resources."""
        return {row["resource_name"]: row["physical_resource_id"] for row in self.on.resources(self.name)}

    def inflict(self) -> None:
        """Inflict each kind of damage once, on resources that are untouched so far."""
        ids = self.ids()
        for damage in DAMAGE:
            number = self._untouched(damage, ids)
            if number is None:
                continue
            resource = damage.prefix + number
            for _ in range(ATTEMPTS):
                began = datetime.now(UTC)
                try:
                    damage.inflict(self.on.administrator, ids, number)
                except ProviderError as error:
                    raise Failed(f"{resource} {damage.kind}: {error}") from error
                if self._is_done(damage, ids, number):
                    self.entries.append(Entry(damage, resource, ids[resource], began))
                    break
            else:
                click.echo(f"{resource} {damage.kind}: the service has not done it")

    def _is_done(self, damage: Damage, ids: dict[str, str], number: str) -> bool:
        """Wait until a damage has taken effect, at most a minute."""
        until = time.monotonic() + MINUTE
        while not (done := damage.is_done(self.on.administrator, ids, number)) and time.monotonic() < until:
            time.sleep(1.0)
        return done

    def _untouched(self, damage: Damage, ids: dict[str, str]) -> str | None:
        """Return the number of a resource for the damage; it and its neighbours count as touched."""
        prefix = damage.prefix
        numbers = [name.removeprefix(prefix) for name in ids if name.rstrip("0123456789") == prefix]
        family = observed_stack.FAMILY.get(prefix, prefix)
        free = [number for number in numbers if (family, number) not in self.touched]
        if family == "server":  # a server with a disk is for the damage of attachments
            free = [number for number in free if (f"disk{number}" in ids) == (prefix == "attachment")]
        if not free:
            return None
        number = self.dice.choice(free)
        self.touched.add((family, number))
        return number

    @contextlib.contextmanager
    def disturbed(self, outage_seconds: float, service: str) -> Iterator[None]:
        """Stop a service for a while, and end workers at random."""
        with working(self._kill), working(partial(self._stop, service, outage_seconds)):
            yield

    def _kill(self, over: threading.Event) -> None:
        while not over.wait(KILL_SECONDS * self.dice.uniform(0.5, 1.5)):
            lines = self.on.up.children().items()
            mine = sorted(pid for pid, line in lines if any(word in line for word in WORKERS))
            with contextlib.suppress(ProcessLookupError, IndexError):
                os.kill(self.dice.choice(mine), signal.SIGKILL)
                self.kills += 1

    def _stop(self, service: str, seconds: float, over: threading.Event) -> None:
        if not service or self.directory is None:
            return
        began = datetime.now(UTC)
        subprocess.run(["./stop.sh", service], cwd=self.directory, check=True, stdout=subprocess.DEVNULL)
        over.wait(seconds)
        subprocess.run(["./start.sh"], cwd=self.directory, check=True, stdout=subprocess.DEVNULL)
        self.outages.append((began, datetime.now(UTC)))

    def approve(self) -> None:
        """Approve the repairs of objects that hold data."""
        query = {"status": "pending"}
        for row in self.on.request("GET", "/repairs", params=query)["repairs"]:
            with contextlib.suppress(Failed):  # its effect has changed: shown again
                self.on.request("POST", f"/repairs/{row['id']}/approve", json={})

    def verdicts(self) -> list[dict[str, Any]]:
        """Return present and ended verdicts, without those that an outage of a service explains."""
        present = self._listed("/observations", "observations")
        ended = self._listed("/observations/history", "history")
        return [row for row in (*present, *ended) if row["verdict"] != "UNKNOWN"]

    def repairs(self) -> list[dict[str, Any]]:
        """Return all repairs."""
        return self._listed("/repairs", "repairs")

    def _listed(self, path: str, key: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.on.request("GET", path, params={"limit": PAGE})[key]
        assert len(rows) < PAGE, f"{path} has several pages"
        return rows

    def settle(self) -> str:
        """Approve repairs until each damage is found and repaired; return the rest after a while."""
        until, shown = time.monotonic() + END_SECONDS, time.monotonic()
        while text := self._unsettled():
            if time.monotonic() > until:
                return text
            if time.monotonic() - shown > MINUTE:
                shown = time.monotonic()
                click.echo(f"to be settled: {text[:400]}")
            with contextlib.suppress(Failed, httpx.HTTPError):
                self.approve()
            time.sleep(2.0)
        return ""

    def _unsettled(self) -> str:
        stack = self.on.stack(self.name) or {"stack_status": "no stack"}
        if not stack["stack_status"].endswith("COMPLETE"):
            return f"{stack['stack_status']}: {stack.get('stack_status_reason')} {self.on.causes(self.name)}"
        rows = self._listed("/observations", "observations")
        known = {(row["physical_resource_id"], row["verdict"]) for row in self.verdicts()}
        missed = [
            str(entry) for entry in self.entries if (entry.physical_id, entry.damage.verdict) not in known
        ]
        under_way = [row for row in self.repairs() if row["status"] not in ENDED]
        left = [f"{row['resource_name']} {row['verdict']}: {row['reason']}" for row in rows]
        left += [f"{row['resource_name']} {row['action']} {row['status']}" for row in under_way]
        return "; ".join((*(f"not found: {text}" for text in missed), *left))

    def contradictions(self) -> list[str]:
        """Compare the damage with verdicts and repairs."""
        verdicts, repairs, found = self.verdicts(), self.repairs(), []
        explained = {row["id"] for row in verdicts if row["resource_name"] in self._hampered(repairs)}
        for entry in self.entries:
            mine = [
                row
                for row in verdicts
                if (row["physical_resource_id"], row["verdict"]) == (entry.physical_id, entry.damage.verdict)
            ]
            neighbours = {
                f"{prefix}{entry.resource[len(entry.damage.prefix) :]}" for prefix in entry.damage.neighbours
            }
            explained |= {row["id"] for row in mine}
            explained |= {row["id"] for row in verdicts if row["resource_name"] in neighbours}
            if len(mine) != 1:
                found.append(f"{entry}: {len(mine)} verdicts")
                continue
            seconds = self._seconds(entry, mine[0])
            if seconds > FOUND_SECONDS:
                found.append(f"{entry}: found after {seconds:.0f} s")
            done = [row["status"] for row in repairs if _is_of(row, mine[0])]
            expected = [["done"]] + [["failed"]] * (entry.resource in self._hampered(repairs))
            if done not in expected:
                found.append(f"{entry}: repairs {done}")
        found += [
            f"without damage: {row['resource_name']} {row['verdict']} {row['reason']} {row['differences']}"
            for row in verdicts
            if row["id"] not in explained
        ]
        return found

    def _hampered(self, repairs: list[dict[str, Any]]) -> set[str]:
        """Return the resources with a repair that failed during an outage: a later one mends its result."""
        failed = [row for row in repairs if row["status"] == "failed"]
        return {
            row["resource_name"]
            for row in failed
            for begin, end in self.outages
            if datetime.fromisoformat(row["started_at"]) < end + AFTERMATH
            and datetime.fromisoformat(row["ended_at"]) > begin
        }

    def _seconds(self, entry: Entry, row: dict[str, Any]) -> float:
        """Return the time from the damage, or the end of a later outage, to the verdict."""
        seen = datetime.fromisoformat(row.get("first_seen") or row["since"])
        began = [end for begin, end in self.outages if begin <= seen and end >= entry.at]
        return (seen - max((entry.at, *began))).total_seconds()

    def seconds(self) -> list[float]:
        """Return the times from each damage to its verdict, in order."""
        by_key = {(row["physical_resource_id"], row["verdict"]): row for row in self.verdicts()}
        keys = [(entry, (entry.physical_id, entry.damage.verdict)) for entry in self.entries]
        return sorted(self._seconds(entry, by_key[key]) for entry, key in keys if key in by_key)

    def differences(self) -> list[str]:
        """Compare the cloud with the template."""
        stack = self.on.stack(self.name) or {}
        path = f"/stacks/{self.name}/{stack['id']}/actions"
        plan = self.on.request("POST", path, json={"converge": {"plan": True}})["converge"]
        return [f"{row['path']} {row['verdict']}: {row['differences']}" for row in plan["resources"]]


def _is_of(repair: dict[str, Any], verdict: dict[str, Any]) -> bool:
    keys = ("physical_resource_id", "verdict", "resource_name")
    return all(repair[key] == verdict[key] for key in keys)


def carry_out(
    on: Installation,
    directory: Path | None,
    *,
    servers: int,
    volumes: int,
    minutes: int,
    outage: float,
    seed: int,
) -> list[str]:
    """Create, damage and delete a stack; return all contradictions."""
    dice = random.Random(seed)
    run, before = Run(on, directory, dice), inventory(on.administrator)
    run.create(servers, volumes)
    expected = observed_stack.counts(servers, volumes)
    for minute in range(minutes):
        service, began = SERVICES[minute % len(SERVICES)], time.monotonic()
        run.inflict()
        click.echo(f"minute {minute}: {len(run.entries)} damaged so far, {service or 'no service'} stopped")
        with run.disturbed(outage, service):
            while time.monotonic() - began < MINUTE:
                with contextlib.suppress(Failed, httpx.HTTPError):
                    run.approve()
                time.sleep(2.0)
    text = run.settle()
    found = [f"not settled: {text}"] if text else []
    found += [*run.contradictions(), *run.differences()]
    objects = Counter(item.collection for item in inventory(on.administrator) - before)
    found += [
        f"{objects[key]} {key}, not {count}" for key, count in expected.items() if objects[key] != count
    ]
    times = run.seconds() or [0.0]
    outcome = dict(Counter(row["status"] for row in run.repairs()))
    click.echo(
        f"{len(run.entries)} faults, {run.kills} workers killed, {len(run.outages)} outages; found after"
        f" {times[len(times) // 2]:.0f} s (median), {times[-1]:.0f} s (longest); repairs: {outcome}"
    )
    on.request("DELETE", f"/stacks/{run.name}")
    if status := on.wait(run.name, END_SECONDS):
        found.append(f"{status}: {on.causes(run.name)}")
    found += [f"left: {item.collection} {item.name}" for item in sorted(inventory(on.administrator) - before)]
    return found


@click.command()
@click.option("--servers", default=100, show_default=True)
@click.option("--volumes", default=20, show_default=True, help="A half of them is attached.")
@click.option("--minutes", default=len(SERVICES), show_default=True)
@click.option("--outage", default=30.0, show_default=True, help="Seconds for which a service is stopped.")
@click.option("--seed", default=1, show_default=True)
def main(**options: Any) -> None:
    """Carry out a run, and print all contradictions."""
    directory = chosen_directory()
    with installation(directory, settings=SETTINGS, workers=2) as on:
        found = carry_out(on, directory, **options)
    for text in found:
        click.echo(f"FAILED {text}")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
