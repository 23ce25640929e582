"""Faults during the create, update and delete of a stack of ten: nothing duplicated, leaked or stuck.

    python -m qa.acceptance.faults [--only TEXT] [--skip TEXT] [--outage 40]

`OPENSTACK_DIR` names a control plane; without it, the cloud is simulated. An action completes, or fails with
a cause and a plain update completes the stack. The cost of a fault is the difference to the time of the
action without one. Exits with 1 otherwise.
"""

from __future__ import annotations

import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Final, NamedTuple

import click

from qa.acceptance.disturbances import Deaths, Injector
from qa.acceptance.fault_table import ALL, CREATE, DELETE, FAULTS, UPDATE, Fault
from qa.acceptance.installation import (
    Failed,
    Installation,
    as_user,
    chosen_directory,
    installation,
)
from qa.acceptance.inventory import Item, inventory, key_pairs
from qa.acceptance.preparations import PREPARATIONS
from qa.acceptance.stack_of_ten import template, wrong_counts

DONE: Final = {CREATE: "CREATE_COMPLETE", UPDATE: "UPDATE_COMPLETE", DELETE: ""}
SETTLED_SECONDS: Final = 60.0  # orphans are deleted, and counts of services are right
TIMEOUT_MINUTES: Final = 40


class Watched(NamedTuple):
    """The orchestrator as its user, and as an administrator who reads while the user's rights are revoked."""

    user: Installation
    watcher: Installation

    def objects(self) -> frozenset[Item]:
        """Return the objects of the cloud."""
        return inventory(self.user.administrator) | key_pairs(self.user.openstack)


class Trial:
    """A fault in the create, update and delete of a stack."""

    def __init__(self, on: Watched, injector: Injector, fault: Fault) -> None:
        """Do nothing yet."""
        self.on, self.injector, self.fault = on, injector, fault
        self.name = f"so-ten-{uuid.uuid4().hex[:6]}"
        self.before = on.objects()
        self.faults: list[str] = []
        self.seconds: dict[str, float] = {}  # of the actions with the fault

    def run(self, usual: dict[str, float]) -> list[str]:
        """Return the failures; `usual`: the seconds of the actions without a fault."""
        for action in ALL:
            began = time.monotonic()
            try:
                text = self._action(action)
            except Failed as failure:
                text = str(failure)
            took = self.seconds.get(action, time.monotonic() - began)
            cost = took - usual.get(action, took)
            limit = self.fault.cost_seconds
            if not text and limit is not None and action in self.seconds and cost > limit:
                text = f"costs {cost:.1f} s"
            label, what = "FAILED" if text else "ok", f"{self.fault.name}: {action}"
            click.echo(f"{label:6} {took:6.1f} s ({cost:+6.1f})  {what}  {text}")
            if text:
                self.faults.append(f"{action}: {text}")
        if left := self._remains():
            self.faults.append(f"left: {', '.join(f'{item.collection} {item.name}' for item in left)}")
            click.echo(f"FAILED {self.faults[-1]}")
        return self.faults

    def _action(self, action: str) -> str:
        if action != CREATE and self.on.watcher.stack(self.name) is None:
            return "no stack"
        if action not in self.fault.actions:
            return self._completed(action)
        with self._prepared(action), self.injector.present(self.fault, action):
            began = time.monotonic()
            self._request(action)
            status = self._wait()
            self.seconds[action] = time.monotonic() - began
            struck = self.injector.deaths.count()
        if self.fault.disturbance.startswith("die"):
            click.echo(f"       {self.fault.name}: {action}: {struck} requests")
            if not struck:
                return "no worker has died"
        if status == DONE[action]:
            return self._wrong(action)
        stack = self.on.watcher.stack(self.name) or {}
        reason = stack.get("stack_status_reason", "")
        causes = self.on.watcher.causes(self.name)
        click.echo(f"       {self.fault.name}: {action}: {status}: {reason} {causes}")
        if not self.fault.may_fail:
            return f"{status}: {reason}"
        return self._completed(UPDATE if action == CREATE else action, changed=action != CREATE)

    @contextmanager
    def _prepared(self, action: str) -> Iterator[None]:
        """Change the cloud before the action, as the fault has it."""
        prepare = PREPARATIONS.get(self.fault.preparation)
        if prepare is None:
            with nullcontext():
                yield
            return
        rows = [] if action == CREATE else self.on.watcher.resources(self.name)
        ids = {row["resource_name"]: row["physical_resource_id"] for row in rows}
        with prepare(self.on.user.administrator, ids):
            yield

    def _completed(self, action: str, *, changed: bool = True) -> str:
        """Carry out an action without a fault; return its fault."""
        self._request(action, changed=changed)
        status = self._wait()
        if status != DONE[action]:
            return f"without the fault: {status}: {self.on.watcher.causes(self.name)}"
        return self._wrong(action)

    def _wait(self) -> str:
        return self.on.watcher.wait(self.name, self.fault.limit_seconds)

    def _request(self, action: str, *, changed: bool = True) -> None:
        request_action(self.on.user, action, self.name, changed=changed, timeout_minutes=TIMEOUT_MINUTES)

    def _wrong(self, action: str) -> str:
        """Return how the objects differ from the stack's."""
        if action == DELETE:
            return ""
        until = time.monotonic() + SETTLED_SECONDS
        while text := wrong_counts(self.on.objects() - self.before):
            if time.monotonic() > until:
                return text
            time.sleep(2.0)
        return ""

    def _remains(self) -> list[Item]:
        """Return the objects that are left, when services had the time to delete theirs."""
        until = time.monotonic() + SETTLED_SECONDS
        while (left := sorted(self.on.objects() - self.before)) and time.monotonic() < until:
            time.sleep(2.0)
        return left


def request_action(
    user: Installation, action: str, name: str, *, timeout_minutes: int, changed: bool = True
) -> None:
    """Request an action on a stack of ten; `changed`: an update with other values."""
    if action == DELETE:
        user.request("DELETE", f"/stacks/{name}")
        return
    content = template(changed=changed and action == UPDATE, suffix=name)
    body = {"template": content, "timeout_mins": timeout_minutes}
    if action == CREATE:
        user.request("POST", "/stacks", json={"stack_name": name, **body})
    else:
        user.request("PUT", f"/stacks/{name}", json=body)


def chosen(only: str, skip: str, *, real: bool) -> list[Fault]:
    """Return the faults with any of the texts in their names, without those with any to skip."""
    wanted, unwanted = only.split(","), [text for text in skip.split(",") if text]
    return [
        fault
        for fault in FAULTS
        if any(text in fault.name for text in wanted)
        and not any(text in fault.name for text in unwanted)
        and (real or not fault.real_only)
    ]


def usual_seconds(on: Watched, injector: Injector) -> dict[str, float]:
    """Return the seconds of the actions without a fault: the shorter of two runs each.

    Raises:
        Failed: an action fails without a fault.
    """
    measured: list[dict[str, float]] = []
    for _ in range(2):
        trial = Trial(on, injector, Fault("none"))
        if faults := trial.run({}):
            raise Failed(f"without a fault: {'; '.join(faults)}")
        measured.append(trial.seconds)
    return {action: min(one[action] for one in measured) for action in ALL}


@contextmanager
def running(directory: Path | None, outage: float) -> Iterator[tuple[Watched, Injector]]:
    """Keep an orchestrator running, for a member of the project."""
    deaths = Deaths()
    try:
        with (
            installation(directory, username="demo", settings=deaths.settings) as user,
            as_user(user.up, user.credentials, "admin") as watcher,
        ):
            injector = Injector(user, directory, deaths, outage)
            with suppress(OSError):
                injector.set({})
            yield Watched(user, watcher), injector
    finally:
        deaths.remove()


@click.command()
@click.option("--only", default="", help="Faults whose names contain any of these texts: a,b.")
@click.option("--skip", default="", help="Not those whose names contain any of these texts.")
@click.option("--outage", default=40.0, show_default=True, help="Seconds of a stopped or frozen service.")
def main(only: str, skip: str, outage: float) -> None:
    """Run the faults; exit with 1 if a fault does harm."""
    directory = chosen_directory()
    faults = chosen(only, skip, real=directory is not None)
    harmful = []
    with running(directory, outage) as (on, injector):
        usual = usual_seconds(on, injector)
        for fault in faults:
            try:
                found = Trial(on, injector, fault).run(usual)
            except Exception as error:  # the next faults are tried in any case
                found = [f"{type(error).__name__}: {error}"]
                click.echo(f"FAILED {fault.name}: {found[0]}")
            if found:
                harmful.append(fault.name)
    click.echo(f"{len(faults) - len(harmful)} of {len(faults)} faults did no harm")
    for name in harmful:
        click.echo(f"  {name}")
    sys.exit(1 if harmful else 0)


if __name__ == "__main__":
    main()
