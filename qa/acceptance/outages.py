"""Long outages of a control plane: a create, an update and a delete of three stacks of ten at the same time.

    python -m qa.acceptance.outages [--services nova-api,neutron] [--seconds 600]

`OPENSTACK_DIR` names the control plane. A service stops when the three actions have begun, and starts again
after the outage. Each action completes, or fails with a cause and a plain update completes it. Nothing is
duplicated or left. Exits with 1 otherwise.
"""

from __future__ import annotations

import sys
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import click

from qa.acceptance.disturbances import Injector
from qa.acceptance.fault_table import ALL, CREATE, DELETE, UPDATE, Fault
from qa.acceptance.faults import DONE, SETTLED_SECONDS, Watched, request_action, running
from qa.acceptance.installation import Failed, chosen_directory
from qa.acceptance.inventory import Item
from qa.acceptance.stack_of_ten import wrong_counts

SERVICES: Final = "nova-api,neutron,cinder-api,keystone,glance,placement"
TIMEOUT_MINUTES: Final = 60
RECOVERY_SECONDS: Final = 900.0  # of the actions, after the outage
KEPT: Final = 2  # stacks that exist after the three actions


class Outage:
    """An outage of a service while three stacks change."""

    def __init__(self, on: Watched, injector: Injector, service: str) -> None:
        """Do nothing yet."""
        self.on, self.injector, self.service = on, injector, service
        suffix = uuid.uuid4().hex[:6]
        self.names = {action: f"so-outage-{action}-{suffix}" for action in ALL}
        self.before = on.objects()

    def run(self) -> list[str]:
        """Return the failures."""
        for action in (UPDATE, DELETE):
            self._request(CREATE, self.names[action])
        for action in (UPDATE, DELETE):
            if (status := self._wait(self.names[action])) != DONE[CREATE]:
                return [f"without an outage: {status}"]
        began = time.monotonic()
        with self.injector.present(Fault(self.service, disturbance=f"stop {self.service}"), CREATE):
            for action in ALL:
                self._request(action, self.names[action])
            with ThreadPoolExecutor(len(ALL)) as threads:
                found = list(threads.map(lambda action: self._ended(action, began), ALL))
        failures = [text for text in found if text]
        if wrong := self._settled(KEPT):
            failures.append(wrong)
        for action in (CREATE, UPDATE):
            self._request(DELETE, self.names[action])
        for action in (CREATE, UPDATE):
            if status := self._wait(self.names[action]):
                failures.append(f"delete after the outage: {status}")
        if wrong := self._settled(0):
            failures.append(f"left: {wrong}")
        return failures

    def _ended(self, action: str, began: float) -> str:
        """Wait for the end of an action, and repeat it if it failed; return its failure."""
        name = self.names[action]
        status = self._wait(name)
        took = time.monotonic() - began
        click.echo(f"       {self.service}: {action}: {status or 'deleted'} after {took:.0f} s")
        if status == DONE[action]:
            return ""
        causes = self.on.watcher.causes(name)
        click.echo(f"       {self.service}: {action}: {causes}")
        if not causes:
            return f"{action}: {status} without a cause"
        if (left := self.injector.outage_seconds - took) > 0:
            time.sleep(left)
        again = DELETE if action == DELETE else UPDATE
        self._request(again, name, changed=action == UPDATE)
        status = self._wait(name)
        return (
            "" if status == DONE[again] else f"{action}: repeated: {status}: {self.on.watcher.causes(name)}"
        )

    def _wait(self, name: str) -> str:
        """Return the status after an action. Without Keystone, the API refuses the requests of the wait."""
        until = time.monotonic() + self.injector.outage_seconds + RECOVERY_SECONDS
        while True:
            try:
                return self.on.watcher.wait(name, until - time.monotonic())
            except Failed as failure:
                if ": 503 " not in str(failure) or time.monotonic() > until:
                    raise
            time.sleep(1.0)

    def _request(self, action: str, name: str, *, changed: bool = True) -> None:
        request_action(self.on.user, action, name, changed=changed, timeout_minutes=TIMEOUT_MINUTES)

    def _settled(self, stacks: int) -> str:
        """Return how the objects differ from the stacks', when services had the time to delete theirs."""
        until = time.monotonic() + SETTLED_SECONDS
        while wrong := self._wrong(self.on.objects() - self.before, stacks):
            if time.monotonic() > until:
                return wrong
            time.sleep(2.0)
        return ""

    @staticmethod
    def _wrong(items: frozenset[Item], stacks: int) -> str:
        return (
            wrong_counts(items, stacks=stacks) if stacks else ", ".join(sorted(item.name for item in items))
        )


def measured(directory: Path, services: list[str], seconds: float) -> list[str]:
    """Run the outages of services, one after the other; return those that did harm."""
    harmful = []
    with running(directory, seconds) as (on, injector):
        for service in services:
            try:
                failures = Outage(on, injector, service).run()
            except Failed as failure:
                failures = [str(failure)]
            for text in failures:
                click.echo(f"FAILED {service}: {text}")
            if failures:
                harmful.append(service)
            else:
                click.echo(f"ok     {service} down for {seconds:.0f} s")
    return harmful


@click.command()
@click.option("--services", default=SERVICES, show_default=True, help="Services that stop, in turn: a,b.")
@click.option("--seconds", default=600.0, show_default=True, help="Duration of an outage.")
def main(services: str, seconds: float) -> None:
    """Run the outages; exit with 1 if one does harm."""
    directory = chosen_directory()
    if directory is None:
        raise click.UsageError("OPENSTACK_DIR names no control plane")
    sys.exit(1 if measured(directory, services.split(","), seconds) else 0)


if __name__ == "__main__":
    main()
