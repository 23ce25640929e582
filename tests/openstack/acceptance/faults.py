"""Faults during the create, update and delete of a stack of ten: nothing duplicated, leaked or stuck.

    python -m tests.openstack.acceptance.faults [--only TEXT]

`OPENSTACK_DIR` names a control plane; without it, the cloud is simulated. An action completes, or fails with
a cause and a plain update completes the stack. Exits with 1 otherwise.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from tests.openstack.acceptance.fault_table import ALL, CREATE, DELETE, FAULTS, Fault
from tests.openstack.acceptance.installation import (
    Failed,
    Installation,
    chosen_directory,
    installation,
)
from tests.openstack.acceptance.inventory import inventory, leaked
from tests.openstack.acceptance.stack_of_ten import template, wrong_counts
from tests.openstack.acceptance.templates import remains

KILL_SECONDS: Final = 4.0  # between two kills
KILLS: Final = 4
FROZEN_SECONDS: Final = 40.0
DONE: Final = {CREATE: "CREATE_COMPLETE", "UPDATE": "UPDATE_COMPLETE", DELETE: ""}


@dataclass
class Injector:
    """The faults of a cloud, and the processes of cloud and orchestrator."""

    on: Installation
    directory: Path | None

    @property
    def path(self) -> Path:
        """The file of the faults."""
        if self.directory is not None:
            return self.directory / "run" / "faults.json"
        return self.on.up.data_dir / "simulated" / "faults.json"

    def set(self, rules: dict[str, Any]) -> None:
        """Replace all faults."""
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps(rules))
        new.replace(self.path)

    @contextmanager
    def present(self, fault: Fault, action: str) -> Iterator[None]:
        """Keep a fault present for a block."""
        over = threading.Event()
        self.set(fault.rules(action))
        thread = threading.Thread(target=self._disturb, args=(fault.disturbance, over), daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            self.set({})

    def _disturb(self, kind: str, over: threading.Event) -> None:
        if kind == "kill the worker":
            for _ in range(KILLS):
                if over.wait(KILL_SECONDS):
                    return
                with suppress(ProcessLookupError, ValueError):
                    os.kill(self.on.up.child("provider"), signal.SIGKILL)
        elif kind == "refuse observations":
            while not over.wait(1.0):
                self.set({"api": [{"method": "GET", "status": 503, "times": 1}]})
        elif kind.startswith("freeze "):
            assert self.directory is not None
            pid = int((self.directory / "run" / f"{kind.partition(' ')[2]}.pid").read_text())
            over.wait(2.0)
            self._signal(pid, signal.SIGSTOP)
            over.wait(FROZEN_SECONDS)
            self._signal(pid, signal.SIGCONT)
        elif kind.startswith("stop "):
            over.wait(2.0)
            subprocess.run(["./stop.sh", kind.partition(" ")[2]], cwd=self.directory, check=True)
            over.wait(FROZEN_SECONDS)
            subprocess.run(["./start.sh"], cwd=self.directory, check=True, stdout=subprocess.DEVNULL)

    @staticmethod
    def _signal(pid: int, number: signal.Signals) -> None:
        """Send a signal to a process and its children."""
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for target in (*map(int, children), pid):
            os.kill(target, number)


class Trial:
    """A fault in the create, update and delete of a stack."""

    def __init__(self, on: Installation, injector: Injector, fault: Fault) -> None:
        """Do nothing yet."""
        self.on, self.injector, self.fault = on, injector, fault
        self.name = f"so-ten-{uuid.uuid4().hex[:6]}"
        self.before = inventory(on.administrator)
        self.faults: list[str] = []

    def run(self) -> list[str]:
        """Return the failures."""
        for action in ALL:
            began = time.monotonic()
            try:
                text = self._action(action)
            except Failed as failure:
                text = str(failure)
            took = time.monotonic() - began
            click.echo(f"{'FAILED' if text else 'ok':6} {took:6.1f} s  {self.fault.name}: {action}  {text}")
            if text:
                self.faults.append(f"{action}: {text}")
        if left := remains(self.on, self.before):
            self.faults.append(f"left: {', '.join(f'{item.collection} {item.name}' for item in left)}")
            click.echo(f"FAILED {self.faults[-1]}")
        return self.faults

    def _action(self, action: str) -> str:
        with suppress(Failed):
            if self.on.stack(self.name) is None and action != CREATE:
                return "no stack"
        if action not in self.fault.actions:
            return self._completed(action)
        with self.injector.present(self.fault, action):
            self._request(action)
            status = self.on.wait(self.name, self.fault.limit_seconds)
        if status == DONE[action]:
            return self._wrong(action)
        stack = self.on.stack(self.name) or {}
        reason = stack.get("stack_status_reason", "")
        click.echo(f"       {self.fault.name}: {action}: {status}: {reason} {self.on.causes(self.name)}")
        if not self.fault.may_fail:
            return f"{status}: {reason}"
        return self._completed("UPDATE" if action == CREATE else action, changed=action != CREATE)

    def _completed(self, action: str, *, changed: bool = True) -> str:
        """Carry out an action without a fault; return its fault."""
        self._request(action, changed=changed)
        status = self.on.wait(self.name, self.fault.limit_seconds)
        if status != DONE[action]:
            return f"without the fault: {status}: {self.on.causes(self.name)}"
        return self._wrong(action)

    def _request(self, action: str, *, changed: bool = True) -> None:
        if action == DELETE:
            self.on.request("DELETE", f"/stacks/{self.name}")
            return
        new = action == CREATE
        body = {"template": template(changed=changed and not new, suffix=self.name), "timeout_mins": 20}
        if new:
            self.on.request("POST", "/stacks", json={"stack_name": self.name, **body})
        else:
            self.on.request("PUT", f"/stacks/{self.name}", json=body)

    def _wrong(self, action: str) -> str:
        """Return how the objects differ from the stack's."""
        if action == DELETE:
            return ""
        text = ""
        for _ in range(15):  # orphans may be in deletion
            if not (text := wrong_counts(leaked(self.on.administrator, self.before))):
                return ""
            time.sleep(2.0)
        return text


@click.command()
@click.option("--only", default="", help="Faults whose names contain this text.")
def main(only: str) -> None:
    """Run the faults; exit with 1 if a fault does harm."""
    directory = chosen_directory()
    chosen = [
        fault for fault in FAULTS if only in fault.name and (directory is not None or not fault.real_only)
    ]
    harmful = []
    with installation(directory) as on:
        injector = Injector(on, directory)
        for fault in chosen:
            if Trial(on, injector, fault).run():
                harmful.append(fault.name)
    click.echo(f"{len(chosen) - len(harmful)} of {len(chosen)} faults did no harm")
    for name in harmful:
        click.echo(f"  {name}")
    sys.exit(1 if harmful else 0)


if __name__ == "__main__":
    main()
