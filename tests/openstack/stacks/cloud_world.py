"""The real engine with the simulated cloud; the test delivers the messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import orjson

from orchestrator.clients.keystone.cloud_session import Cloud
from orchestrator.clients.openstack.cloud import OpenStack
from orchestrator.embedded.simulated_cloud import settings_of
from orchestrator.json_types import JsonObject
from orchestrator.operations.keystone.delegated_credentials import credential_reaper
from orchestrator.security.keystone import caller_of
from simulated_openstack.cloud import SimulatedCloud
from tests.scenarios import clock
from tests.scenarios.fake_cloud import Crash
from tests.scenarios.world import HOUR, World

RECORDS: Final = frozenset({"keystone.token", "octavia.quota"})  # kept without being objects of a user


class CloudWorld(World):
    """An installation whose caller is an administrator of the project `demo`. Stacks have all of their
    rights."""

    def __init__(self, url: str, cloud: SimulatedCloud, login: Cloud, **settings: Any) -> None:
        of_cloud = settings_of(cloud.keystone.port, cloud.password)
        super().__init__(url, **{**of_cloud, "trusts_delegated_roles": "*", **settings})
        self.cloud, self.login = cloud, login
        session = login.session()
        contents = session.auth.get_access(session)._data["token"]
        self.caller = caller_of(contents, session.get_token())
        self.context = replace(self.context, caller=self.caller)

    @property
    def openstack(self) -> OpenStack:
        """The client layer, for preparations and assertions."""
        return OpenStack(self.login, 60.0)

    def objects(self) -> Counter[tuple[str, str]]:
        """Return kinds and ids of all objects in the cloud."""
        return Counter((kind, row["id"]) for kind, row in self._rows())

    def texts(self) -> str:
        """Return all objects in the cloud as a text."""
        return orjson.dumps([row for _, row in self._rows()]).decode()

    def _rows(self) -> Iterator[tuple[str, JsonObject]]:
        self.cloud.schedule.run_due()
        for kind, table in self.cloud.state._tables.items():
            if kind not in RECORDS:
                yield from ((kind, row) for row in table)

    def settle(self, uuid: str, expected: str) -> None:
        """Deliver until nothing is under way; the stack must then be in a state."""
        self.deliver_all()
        assert self.state(uuid) == expected, self.causes()

    def settle_by_time(self, uuid: str, expected: str) -> None:
        """Deliver until the stack is in a state; between the deliveries an hour passes."""
        for _ in range(20):
            self.retry(2)
            if self.state(uuid) == expected:
                return
            self.elapse(HOUR, "delete request", "operation")
            clock.age_refusals(self.database, HOUR)
        raise AssertionError(f"{self.state(uuid)}: {self.causes()}")

    def deliver_in_spite_of_deaths(self) -> None:
        """Deliver until nothing is under way; a worker that dies is replaced an hour later."""
        while True:
            try:
                return self.deliver_all()
            except Crash:
                self.engine = self.new_engine()
                self.forget_leases()
                self.elapse(HOUR, "lost lease")

    def causes(self) -> list[tuple[str, str]]:
        """Return the reasons of failed resources."""
        query = "SELECT name, status_reason FROM resource WHERE status = 'FAILED' ORDER BY id"
        return [(row.name, row.status_reason) for row in self.rows(query)]

    def ids(self) -> Mapping[str, str]:
        """Return the physical ids of the current resources."""
        query = "SELECT name, physical_id FROM resource WHERE NOT deposed ORDER BY id"
        return {row.name: row.physical_id for row in self.rows(query)}

    def tidy(self) -> None:
        """Remove the credentials of deleted stacks."""
        with self.database.borrow() as db:
            db.execute("UPDATE credential SET due_at = now() WHERE due_at IS NOT NULL")
        credential_reaper(self.database, self.cipher, self.settings).run()
