"""The faults of a cloud while a stack changes: rules of the injector, processes, credentials."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import orjson

from orchestrator.errors import ProviderError
from qa.acceptance.background import working
from qa.acceptance.fault_table import Fault
from qa.acceptance.installation import Installation
from qa.acceptance.mortal.sitecustomize import VARIABLE

BEGIN_SECONDS: Final = 0.7  # after the start of an action
FIRST_KILL_SECONDS: Final = 1.0  # an update lasts two seconds
KILL_SECONDS: Final = 4.0  # between two kills
KILLS: Final = 4
OBSERVATION_SECONDS: Final = 0.4  # between two refused observations
REVOKED_SECONDS: Final = 12.0


@dataclass
class Deaths:
    """The deaths of workers at their requests (`mortal/sitecustomize.py`)."""

    directory: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="deaths-")))

    @property
    def settings(self) -> dict[str, str]:
        """The environment of the workers."""
        code = str(Path(__file__).with_name("mortal"))
        known = os.environ.get("PYTHONPATH", "")
        return {VARIABLE: str(self.directory), "PYTHONPATH": os.pathsep.join(filter(None, (code, known)))}

    def set(self, moment: str) -> None:
        """End workers at this moment of each request; "": of none."""
        for file in self.directory.iterdir():
            file.unlink()
        if moment:
            (self.directory / "moment").write_text(moment)

    def count(self) -> int:
        """Return the number of requests that were struck."""
        with suppress(FileNotFoundError):
            return len((self.directory / "struck").read_text().splitlines())
        return 0

    def remove(self) -> None:
        """Remove the directory."""
        shutil.rmtree(self.directory)


def set_faults(on: Installation, directory: Path | None, rules: Mapping[str, Any]) -> None:
    """Replace all faults of the control plane of a directory, or else of the simulated cloud."""
    folder = on.up.data_dir / "simulated" if directory is None else directory / "run"
    new = folder / "faults.new"
    new.write_bytes(orjson.dumps(rules))
    new.replace(folder / "faults.json")


@dataclass
class Injector:
    """The faults of a cloud, and the processes of cloud and orchestrator."""

    on: Installation
    directory: Path | None
    deaths: Deaths
    outage_seconds: float

    def set(self, rules: Mapping[str, Any]) -> None:
        """Replace all faults."""
        set_faults(self.on, self.directory, rules)

    @contextmanager
    def present(self, fault: Fault, action: str) -> Iterator[None]:
        """Keep a fault present for a block."""
        self.set(fault.rules(action))
        try:
            with working(partial(self._disturb, fault.disturbance)):
                yield
        finally:
            self.set({})

    def _disturb(self, disturbance: str, over: threading.Event) -> None:
        kind, _, object_ = disturbance.partition(" ")
        match kind:
            case "kill":
                self._kill(1 if object_ == "once" else KILLS, over)
            case "refuse":
                while not over.wait(OBSERVATION_SECONDS):
                    self.set({"api": [{"method": "GET", "status": 503, "times": 1}]})
            case "die":
                self.deaths.set(object_)
                over.wait()
                self.deaths.set("")
            case "freeze":
                self._freeze(object_, over)
            case "stop":
                self._stop(object_, over)
            case "revoke":
                self._revoke(object_, over)

    def _kill(self, times: int, over: threading.Event) -> None:
        for number in range(times):
            if over.wait(KILL_SECONDS if number else FIRST_KILL_SECONDS):
                return
            with suppress(ProcessLookupError, ValueError):
                os.kill(self.on.up.child("provider"), signal.SIGKILL)

    def _freeze(self, service: str, over: threading.Event) -> None:
        assert self.directory is not None
        pid = int((self.directory / "run" / f"{service}.pid").read_text())
        over.wait(BEGIN_SECONDS)
        _signal(pid, signal.SIGSTOP)
        over.wait(self.outage_seconds)
        _signal(pid, signal.SIGCONT)

    def _stop(self, service: str, over: threading.Event) -> None:
        over.wait(BEGIN_SECONDS)
        subprocess.run(["./stop.sh", service], cwd=self.directory, check=True)
        over.wait(self.outage_seconds)
        subprocess.run(["./start.sh"], cwd=self.directory, check=True, stdout=subprocess.DEVNULL)

    def _revoke(self, what: str, over: threading.Event) -> None:
        """Revoke the trusts of the user, or its roles for a while; "tokens": for a moment."""
        over.wait(BEGIN_SECONDS)
        user = self.on.cloud.session().get_user_id()
        admin = self.on.administrator.identity
        if what == "trusts":
            own = self.on.openstack.identity
            for trust in own.get("/OS-TRUST/trusts", {"trustor_user_id": user})["trusts"]:
                with suppress(ProviderError):
                    own.delete(f"/OS-TRUST/trusts/{trust['id']}")
            return
        path = f"/projects/{self.on.cloud.session().get_project_id()}/users/{user}/roles"
        roles = [role["id"] for role in admin.get(path)["roles"]]
        for role in roles:
            admin.delete(f"{path}/{role}")
        if what == "roles":
            over.wait(REVOKED_SECONDS)
        for role in roles:
            admin.put(f"{path}/{role}")


def _signal(pid: int, number: signal.Signals) -> None:
    """Send a signal to a process and its children."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    for target in (*map(int, children), pid):
        os.kill(target, number)
