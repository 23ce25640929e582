"""A world with the rounds and repairs of the continuous observation, carried out by the test."""

from __future__ import annotations

from typing import Any, Final

import orjson

from orchestrator.clients.keystone.cloud_session import Cloud
from orchestrator.operations.context import Body
from orchestrator.operations.observation import repair_requests, rules
from orchestrator.operations.observation.healing import repair_due_faults
from orchestrator.security.encryption import Cipher
from orchestrator.store.observation import counts, groups, repairs
from simulated_openstack.cloud import SimulatedCloud
from tests.openstack.stacks.cloud_world import CloudWorld

LISTS: Final = ("/servers/detail$", "/v2.0/[a-z-]+$", "/volumes/detail$")
MANY: Final = 1_000_000  # messages
QUIET: Final = "UPDATE observation_group SET due_at = now() + interval '1 hour'"


class ObservedWorld(CloudWorld):
    """An installation whose stacks are observed."""

    def __init__(self, url: str, cloud: SimulatedCloud, login: Cloud, cipher: Cipher | None = None) -> None:
        super().__init__(url, cloud, login, cipher=cipher, observation_interval_seconds=60)
        self.changes: list[str] = []  # requests that change something
        self._count_changes()

    @property
    def db(self) -> Any:
        """The connection of the worker."""
        return self.database.check_connection(durable=True)

    def policy(self, mode: str, **target: str) -> None:
        """Set a policy."""
        rules.create(self.context, Body(orjson.dumps({"kind": "policy", "mode": mode, **target})))

    def answer(self, repair: object, verb: str) -> None:
        """Approve or decline a repair."""
        repair_requests.answer(self.context, str(repair), Body(b"{}"), verb)

    def counts(self, stack: str) -> dict[str, int]:
        """Return the number of resources of a stack by verdict."""
        row = self.stack_row(stack)
        found = counts.all_verdicts(self.database, row, counts.deviating(self.database, row))
        return {verdict: number for verdict, number in found.items() if number}

    def hide_everything(self) -> None:
        """Let the cloud lose all objects: lists are empty, and objects are not found."""
        lists = [{"method": "GET", "path": path, "truncate": 0.0} for path in LISTS]
        objects = {
            "method": "GET",
            "path": "/(servers|ports|networks|subnets|security-groups|volumes)/[0-9a-f-]{36}",
        }
        self.cloud.faults.set({"api": [*lists, {**objects, "status": 404}]})

    def discover(self) -> None:
        """Find the groups of all projects."""
        groups.start_discoveries(self.db, self.settings.region_name, 0.0)
        self._run("discovery")

    def round(self, *kinds: str) -> None:
        """Carry out a round of all groups, or of these kinds, without repairs."""
        self._run("lists")
        if kinds == ("lists",):
            return
        self._run("single")
        while self._left("single"):
            self._run("single")

    def heal(self) -> None:
        """Decide about all faults, carry the repairs out, and observe the results."""
        self.db.execute("UPDATE repair SET due_at = now() WHERE due_at IS NOT NULL")
        while self._start_repairs():
            self._settle()
            self.db.execute(
                "UPDATE repair SET due_at = now() WHERE due_at IS NOT NULL AND status = 'waiting'"
            )
        self.round()
        self._start_repairs()  # notes the results
        self._settle()

    def _start_repairs(self) -> bool:
        """Decide about all due faults, a part at a time; return whether a repair has started."""
        before, started = -1, False
        while (left := len(repairs.due(self.db, MANY))) != before:
            messages = repair_due_faults(self.db, self.types)
            self.messages += messages
            before, started = left, started or bool(messages)
        return started

    def _settle(self) -> None:
        self.db.execute(QUIET)
        self.deliver_all(limit=MANY)

    def settle(self, uuid: str, expected: str) -> None:
        """Deliver until nothing is under way; the stack must then be in a state."""
        self.deliver_all(limit=MANY)
        assert self.state(uuid) == expected, self.causes()

    def _run(self, kind: str) -> None:
        self.db.execute(QUIET)
        self.db.execute(
            "UPDATE observation_group SET due_at = now(), enqueued_at = NULL WHERE kind = %s", (kind,)
        )
        for message in groups.due(self.db, 100):
            self.deliver_one(message)

    def _left(self, kind: str) -> bool:
        query = """SELECT count(*) AS n FROM observation_group
            WHERE kind = :kind AND after_id > 0"""
        return bool(self.rows(query, kind=kind)[0].n)

    def _count_changes(self) -> None:
        record = self.cloud.requests.record

        def counting(service: str, request: Any) -> None:
            if request.method != "GET" and service != "keystone":
                self.changes.append(f"{request.method} {service} {request.path}")
            record(service, request)

        self.cloud.requests.record = counting  # type: ignore[method-assign]
