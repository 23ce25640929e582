"""The real engine and store, with the delivery of messages in the test's hands: any order, any repeat, any
loss.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import orjson
from sqlalchemy import text

from orchestrator.config import Settings
from orchestrator.engine.messages import Message, ObservationMessage, RoundMessage, SignalMessage
from orchestrator.operations.bootstrap import build_worker_context
from orchestrator.operations.context import Body, OperationContext
from orchestrator.operations.maintenance.late_requests import follow_late_requests
from orchestrator.operations.maintenance.sweep import Sweep
from orchestrator.operations.observation.observe import observe_resource
from orchestrator.operations.observation.rounds import observe_group
from orchestrator.operations.outputs.outputs import resolve_outputs
from orchestrator.operations.reconcile.check import check_of
from orchestrator.operations.reconcile.worker_context import WorkerContext
from orchestrator.operations.signals import accept, health_marks
from orchestrator.operations.signals.process import process_signals
from orchestrator.operations.stacks import actions, create_delete
from orchestrator.operations.stacks import update as updates
from orchestrator.resources.registry import GROUP, Registry, load_registry
from orchestrator.security.caller import USER_ROLES, Caller
from orchestrator.security.encryption import Cipher, new_key
from orchestrator.store.connections.database import Database
from orchestrator.store.stacks import stacks as stored_stacks
from tests import constants
from tests.scenarios import clock
from tests.scenarios.seams import Seams
from tests.scenarios.warm_database import NAME, kept_at

HOUR = 3600.0


@cache
def _installed() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}


class World:
    """An installation without processes: the test sends requests and delivers the resulting messages."""

    def __init__(
        self,
        url: str,
        *,
        seed: int = 0,
        types: Mapping[str, Any] | None = None,
        cipher: Cipher | None = None,
        **settings: Any,
    ) -> None:
        self.random = random.Random(seed)
        replaced = {"inline_body_size": 10_000_000} | constants.take(settings)
        self._restore_constants = constants.replace(replaced)
        observed = "observation_interval_seconds" in replaced
        self.settings = Settings(database_url=url, **{"auth": "none", "observation": observed, **settings})
        self.database = self.open(url)
        self.cipher = cipher or Cipher([new_key()])
        self.types = Registry(_installed(), types) if types else load_registry()
        self.caller = Caller("p1", "tester", USER_ROLES)
        self.context = OperationContext(self.database, self.cipher, self.caller, self.settings, self.types)
        self.engine = self.new_engine()
        self.messages: list[Message] = []
        self.seams = Seams()
        self.sweep = Sweep(self.database, self.settings, self.types, self.cipher)
        self._kept_sweeps = None
        if (kept := kept_at(url)) and self.database is kept.database:
            self.sweep._db = self._kept_sweeps = kept.sweep_connection()

    def open(self, url: str) -> Database:
        """Return the database as this world's processes reach it."""
        kept = kept_at(url)
        return kept.database if kept else Database(url, NAME)

    def new_engine(self) -> WorkerContext:
        """A worker's worth of memory, empty."""
        engine = build_worker_context(self.database, self.cipher, self.types, self.settings, self.plan_apart)
        engine.breakers.known_seconds = 0.0
        engine.quarantine.refresh_seconds = math.inf  # by real time; tests of the quarantine read it always
        return engine

    def plan_apart(self, node_id: int, lease: int) -> None:
        raise AssertionError("small stacks are planned in place")

    def close(self) -> None:
        self.seams.remove()
        self._restore_constants()
        kept = kept_at(self.database.url)
        if kept is None or self.database is not kept.database:
            self.database.engine.dispose()
            for durable in (True, False):
                self.database.check_connection(durable=durable).close()
        if self.sweep._db is not self._kept_sweeps:
            self.sweep.close()

    # Requests of a user.

    def create(self, name: str, resources: Mapping[str, Any], **request: Any) -> str:
        """Ask for a stack; return its uuid."""
        template = {"heat_template_version": "2021-04-16", "resources": resources}
        sections = ("outputs", "parameters", "conditions")
        template |= {key: request.pop(key) for key in sections if key in request}
        return self.submit(name, template, **request)

    def submit(self, name: str, template: Mapping[str, Any], **request: Any) -> str:
        """Ask for a stack of a whole template; return its uuid."""
        body = orjson.dumps({"stack_name": name, "template": template, **request})
        accepted = create_delete.create(self.context, Body(body))
        self.messages += accepted.messages
        return accepted.uuid

    def update(self, name: str, resources: Mapping[str, Any], **request: Any) -> None:
        """Ask for another template."""
        template = {"heat_template_version": "2021-04-16", "resources": resources}
        sections = ("outputs", "parameters", "conditions")
        template |= {key: request.pop(key) for key in sections if key in request}
        body = Body(orjson.dumps({"template": template, **request}))
        self.messages += updates.update(self.context, self.stack_row(name), body).messages

    def patch(self, name: str, **request: Any) -> None:
        """Request a PATCH update of the stack."""
        body = Body(orjson.dumps(request))
        self.messages += updates.update(self.context, self.stack_row(name), body, patch=True).messages

    def act(self, name: str, action: str, *, wait: bool = False) -> None:
        """Ask for an action."""
        body = Body(orjson.dumps({action: None}))
        self.messages += actions.start_action(self.context, self.stack_row(name), body, wait=wait)

    def signal(self, name: str, resource: str, details: Any = None) -> None:
        """Send a resource something."""
        body = Body(b"" if details is None else orjson.dumps(details))
        self.messages += accept.signal(self.context, self.stack_row(name), resource, body)

    def clear(self, name: str, resource: str, hook: str) -> None:
        """Let a resource go on that waits at a hook."""
        self.signal(name, resource, {"unset_hook": hook})

    def mark(self, name: str, resource: str, *, unhealthy: bool = True, **options: Any) -> None:
        """Mark a resource to be replaced, or unmark it."""
        body = Body(orjson.dumps({"mark_unhealthy": unhealthy, **options}))
        health_marks.mark_unhealthy(self.context, self.stack_row(name), resource, body)

    def delete(self, name: str) -> None:
        self.messages += create_delete.delete(self.context, self.stack_row(name))

    def stack_row(self, name: str) -> stored_stacks.StackRow:
        row = stored_stacks.find(self.database, self.caller.project_id, name)
        assert row is not None
        return row

    def outputs(self, name: str) -> dict[str, Any]:
        return {
            out.key: out.value for out in resolve_outputs(self.database, self.cipher, self.stack_row(name))
        }

    # The broker and the clock.

    def deliver(self, count: int = 1) -> int:
        """Deliver the oldest messages."""
        for delivered in range(count):
            if not self.messages:
                return delivered
            self.deliver_one(self.messages.pop(0))
        return count

    def deliver_one(self, message: Message) -> None:
        if isinstance(message, SignalMessage):
            self.messages += process_signals(self.engine, message.resource_id)
            return
        if isinstance(message, ObservationMessage):
            self.messages += follow_late_requests(self.engine, message.resource_id)
            self.messages += observe_resource(self.engine, message.resource_id)
            return
        if isinstance(message, RoundMessage):
            observe_group(self.engine, message.group_id)
            return
        self.messages += check_of(message.queue)(self.engine, [message.node_id], message.traversal, None)

    def deliver_all(
        self, *, shuffle: bool = False, repeat: float = 0.0, lose: float = 0.0, limit: int = 4_000
    ) -> None:
        """Deliver until nothing is under way, sweeping when the queue is empty."""
        for _ in range(limit):
            if not self.messages and not (self.sweep_once() or self.sweep_once()):  # lost messages become due
                return
            index = self.random.randrange(len(self.messages)) if shuffle else 0
            message = self.messages.pop(index)
            if self.random.random() < repeat:
                self.messages.append(message)
            if self.random.random() < lose:
                continue
            self.deliver_one(message)
        raise AssertionError("it never comes to rest")

    def sweep_once(self) -> bool:
        """Make scheduled work due and sweep; return False if that found nothing."""
        clock.make_due(self.database, "node", "signal", "snapshot", "observation", "observation pass")
        clock.make_probes_due(self.database)
        self.elapse(HOUR, "enqueue")
        self.messages += self.sweep.run()
        return bool(self.messages)

    def audit_soon(self) -> None:
        """Have the next sweep run every job whose interval is not over."""
        self.sweep.last_runs = dict.fromkeys(self.sweep.last_runs, -math.inf)

    def retry(self, times: int = 1) -> None:
        """Make waiting nodes due `times` times, then deliver the remaining messages."""
        for _ in range(times):
            self._deliver_pending()
            self.sweep_once()
        self._deliver_pending()

    def _deliver_pending(self) -> None:
        while self.messages:
            self.deliver()

    def forget_leases(self) -> None:
        """Let every lease expire, as if every worker had died."""
        clock.expire_leases(self.database)

    def elapse(self, seconds: float, *starts: str, where: str = "true", **values: Any) -> None:
        """Let so much time pass since these starts (`clock.STARTS`)."""
        clock.elapse(self.database, seconds, *starts, where=where, **values)

    # Hooks at the named points of the protocol (`seams.POINTS`).

    def before(self, point: str, action: Callable[[], object], *, times: float = 1, **when: Any) -> None:
        """Run `action` before the next `times` calls at a point whose details equal `when`."""
        self.seams.before(point, action, times=times, **when)

    def after(self, point: str, action: Callable[[], object], *, times: float = 1, **when: Any) -> None:
        """Run `action` after the next `times` calls at a point whose details equal `when`."""
        self.seams.after(point, action, times=times, **when)

    def record(self, point: str, detail: str = "", **when: Any) -> list[Any]:
        """Return a list that collects a detail of every call at a point from now on."""
        return self.seams.record(point, detail, **when)

    # Readers.

    def resource(self, name: str) -> Any:
        """Return the row of the only resource with this name."""
        [row] = self.resources(name)
        return row

    def status(self, name: str) -> str:
        """Return the action and status of a resource."""
        row = self.resource(name)
        return f"{row.action}_{row.status}"

    def resources(self, name: str | None = None) -> list[Any]:
        """Return the rows of all resources, or of those with the given name, the oldest first."""
        if name is None:
            return self.rows("SELECT * FROM resource ORDER BY id")
        return self.rows("SELECT * FROM resource WHERE name = :name ORDER BY id", name=name)

    def nodes(self, **where: Any) -> list[Any]:
        """Return the rows of the nodes with these column values, the oldest first."""
        chosen = " AND ".join(f"{column} = :{column}" for column in where) or "true"
        return self.rows(f"SELECT * FROM graph_node WHERE {chosen} ORDER BY id", **where)

    def state(self, uuid: str) -> str:
        with self.database.engine.connect() as connection:
            row = connection.execute(
                text("SELECT action, status FROM stack WHERE uuid = :u"), {"u": uuid}
            ).one()
        return f"{row.action}_{row.status}"

    def rows(self, query: str, **values: Any) -> list[Any]:
        with self.database.engine.connect() as connection:
            return list(connection.execute(text(query), values).all())

    def paused(self, name: str) -> list[tuple[str, str]]:
        """The resources that wait at a hook, and their hooks."""
        waiting = accept.waiting(self.context, self.stack_row(name))
        return sorted((item.name, item.hook) for item in waiting)

    def event_reasons(self, uuid: str, resource: str) -> list[str]:
        """The events of a resource with their reasons."""
        query = """SELECT e.action, e.status, e.reason FROM event e JOIN stack s ON s.id = e.stack_id
            WHERE s.uuid = :u AND e.resource_name = :r ORDER BY e.id"""
        rows = self.rows(query, u=uuid, r=resource)
        return [f"{row.action}_{row.status} {row.reason}" for row in rows]

    def events(self, uuid: str) -> list[str]:
        query = """SELECT e.resource_name, e.action, e.status FROM event e JOIN stack s ON s.id = e.stack_id
            WHERE s.uuid = :u ORDER BY e.id"""
        return [f"{row.resource_name} {row.action}_{row.status}" for row in self.rows(query, u=uuid)]


def test_resource(value: Any = "v", requires: Iterable[str] = (), **properties: Any) -> dict[str, Any]:
    """A TestResource as a template has it."""
    snippet: dict[str, Any] = {"type": "OS::Heat::TestResource", "properties": {"value": value, **properties}}
    if requires:
        snippet["depends_on"] = list(requires)
    return snippet


test_resource.__test__ = False  # type: ignore[attr-defined]
