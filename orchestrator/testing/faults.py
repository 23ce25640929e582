"""Faults of a provider, injected into a single call of a verb, and the engine's reaction to them.

A sample with `intercept` lets every call of its client go through a function. The contract runs the life of a
resource once for each call and each fault, repeats verbs like the engine, and requires the same end.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from orchestrator.errors import UNREACHABLE_ERRORS, ProviderBusy, ProviderError, ProviderSilent
from orchestrator.resources.base import Observation
from orchestrator.resources.verbs.values import found_ids
from orchestrator.testing.operated import Operated
from orchestrator.testing.samples import other_value

Send = Callable[[], Any]

# busy: refused; silent: not carried out and not answered; lost: carried out and not answered; late: not
# answered, and carried out after the next call; slow: answered after a while.
FAULTS: Final = ("busy", "silent", "lost", "late", "slow")
SLOW_SECONDS: Final = 0.05
MAX_TRIES: Final = 10
UNANSWERED: Final = (ProviderSilent, ConnectionError, TimeoutError)


class FaultAt:
    """Injects a fault into the call with a number; without a fault it only counts the calls."""

    def __init__(self, fault: str = "", number: int = 0) -> None:
        """Calls are numbered from 1."""
        self.fault, self.number = fault, number
        self.calls = 0
        self._late: list[Send] = []

    def __call__(self, send: Send) -> Any:
        """Make a call, or let it fail."""
        self.calls += 1
        if self.calls != self.number:
            return send()
        match self.fault:
            case "busy":
                raise ProviderBusy("injected: busy", retry_after=0.0)
            case "silent":
                raise ProviderSilent("injected: no answer")
            case "late":
                self._late.append(send)
                raise ProviderSilent("injected: no answer yet")
            case "lost":
                send()
                raise ProviderSilent("injected: the answer was lost")
            case "slow":
                time.sleep(SLOW_SECONDS)
        return send()

    def land(self) -> None:
        """Carry out a late request. By now it may be refused."""
        while self._late:
            try:
                self._late.pop()()
            except (ProviderError, LookupError):
                continue


class Life:
    """The life of a resource under a fault: create, update, suspend, resume, snapshot, release, reclaim,
    delete.
    """

    def __init__(self, operated: Operated, fault: FaultAt) -> None:
        """The resource is not created yet."""
        self.operated, self.fault = operated, fault
        self.duplicates: list[str] = []  # deleted, like the engine does

    def run(self) -> None:
        """Live, and assert the end of each operation."""
        operated, kind = self.operated, self.operated.kind
        self._create()
        self._settle("CREATE")
        name = operated.updatable()
        if name is not None:
            value = other_value(kind, operated.sample, name)
            self._request("UPDATE", lambda: operated.update(**{name: value}))
        if kind.can_pause:
            for action in ("SUSPEND", "RESUME"):
                self._request(action, lambda action=action: operated.pause(action))  # type: ignore[misc]
        if kind.can_copy:
            self._request("SNAPSHOT", operated.snapshot)
            self._repeat(lambda: kind.delete_snapshot(operated.ctx, {}))
        if kind.can_release and not kind.deletes_first:
            for action, verb in (("RELEASE", operated.release), ("RECLAIM", operated.reclaim)):
                self._request(action, verb)
        self._request("DELETE", operated.delete)

    def _create(self) -> None:
        operated = self.operated
        for _ in range(MAX_TRIES):
            try:
                operated.create()
            except UNANSWERED:
                self.fault.land()  # its flight time passes
                found = found_ids(self._repeat(lambda: operated.kind.find(operated.ctx, operated.ctx.token)))
                if found:
                    operated.adopt(found[0])
                    self.duplicates += found[1:]
                    return
            except ProviderBusy:
                continue
            else:
                return
        raise AssertionError("the create is never answered")

    def _request(self, action: str, request: Callable[[], object]) -> None:
        """Request an operation and follow it to its end."""
        self._repeat(request)
        self._settle(action)

    def _settle(self, action: str) -> None:
        observation: Observation = self._repeat(self.operated.settled)
        if action == "DELETE":
            assert not observation.exists, f"{action}: {observation}"
            return
        if action == "RELEASE":
            assert (observation.exists, observation.released) == (True, True), f"{action}: {observation}"
            return
        fine = (observation.exists, observation.ready, observation.error) == (True, True, "")
        assert fine, f"{action}: {observation}"

    def _repeat(self, call: Callable[[], Any]) -> Any:
        """Repeat a call until it is answered. A late request is carried out after its repetition."""
        for _ in range(MAX_TRIES):
            try:
                result = call()
            except UNREACHABLE_ERRORS:
                continue
            self.fault.land()
            return result
        raise AssertionError("the call is never answered")
