"""Real workers against real servers, with faults at named points: the basis of the "never lost" tests.

`Cluster` runs the same processes as `orchestrator up`, each with `tests/plugins/crash` in it, and replaces
dead processes. Requests go directly to the operations; results are read from PostgreSQL and from the log of
the server of things.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import orjson
import psycopg
import pytest
from psycopg import sql

from orchestrator.config import Settings
from orchestrator.embedded.process import Child, Process
from orchestrator.embedded.processes import READY_MODULE, workers
from orchestrator.operations.context import Body, OperationContext
from orchestrator.operations.stacks import create_delete
from orchestrator.operations.stacks import update as updates
from orchestrator.resources.registry import GROUP, Registry
from orchestrator.security.caller import Caller
from orchestrator.security.encryption import Cipher, new_key
from orchestrator.store.connections.database import Database
from orchestrator.store.stacks import stacks as stored_stacks
from tasks.publisher import Dispatcher
from tests import constants
from tests.fork_server import running_fork_server
from tests.patience import Patience
from tests.plugins.thing_fixture import THING_DIR, ThingServer

CRASH_DIR = Path(__file__).parents[1] / "plugins" / "crash"
LEASE_SECONDS = 2.0
RECOVERY_SECONDS = 60.0  # maximum delay caused by a fault


@contextlib.contextmanager
def read_only(url: str) -> Iterator[None]:
    """Have the database accept no writes for a while: open sessions end, and new ones are read-only."""
    with psycopg.connect(url, autocommit=True) as db:
        change = sql.SQL("ALTER DATABASE {name} SET default_transaction_read_only = {value}")
        name = sql.Identifier(db.info.dbname)
        db.execute(change.format(name=name, value="on"))
        others = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        db.execute(f"SELECT pg_terminate_backend(pid) {others}")
        try:
            yield
        finally:
            db.execute(change.format(name=name, value="off"))


class Cluster:
    """An installation's worker processes."""

    def __init__(
        self,
        folder: Path,
        database_url: str,
        broker_url: str,
        things: ThingServer,
        *,
        checkers: int = 2,
        providers: int = 1,
        slice_length: int | None = None,
        events: bool = False,
        key: str | None = None,
        **settings: Any,
    ) -> None:
        """Prepare `checkers` workers for local types and `providers` for external types; `key` is the
        encryption key of an older installation.
        """
        self.folder, self.url, self.broker_url, self.things = folder, database_url, broker_url, things
        self.armed = folder / "armed"
        self.armed.mkdir(parents=True)
        self.key = key = key or new_key()
        chosen = {"lease_seconds": LEASE_SECONDS, "re_enqueue_seconds": 1.0, **settings}
        replaced = constants.take(chosen)
        constants.replace_for_test(dict(replaced))
        env = {name: value for name, value in os.environ.items() if not name.startswith("ORCHESTRATOR_")}
        env |= {f"ORCHESTRATOR_{name.upper()}": str(value) for name, value in chosen.items()}
        env |= {
            "ORCHESTRATOR_DATABASE_URL": database_url,
            "ORCHESTRATOR_BROKER_URL": broker_url,
            "ORCHESTRATOR_ENCRYPTION_KEYS": key,
            "ORCHESTRATOR_TEST_CRASH": str(self.armed),
        }
        env |= constants.environment(replaced)
        if slice_length is not None:
            env["ORCHESTRATOR_TEST_SLICE"] = str(slice_length)
        env = things.env(env)
        env["PYTHONPATH"] = os.pathsep.join([str(CRASH_DIR), env["PYTHONPATH"]])
        self.children = {child.name: child for child in self._children(env, checkers, providers, events)}
        self.processes: dict[str, Process] = {}
        self.database = Database(database_url, "orchestrator-test")
        self.dispatcher = Dispatcher(broker_url)
        types = Registry({point.name: point for point in entry_points(group=GROUP)})
        self.context = OperationContext(
            self.database, Cipher([key]), Caller("p1", "tester"), Settings(**chosen), types
        )

    def _children(
        self, env: Mapping[str, str], checkers: int, providers: int, events: bool
    ) -> Iterator[Child]:
        made = workers(env, self.folder, count=max(checkers, 1), events=events)
        kinds = [child for child in made if child.name != "provider1"][:checkers]
        for number in range(1, providers + 1):
            name = f"provider{number}"
            argv = tuple(keyword.replace("provider1", name) for keyword in made[-1].argv)
            reported = self.folder / f"{name}.ready"
            kinds.append(
                replace(
                    made[-1],
                    name=name,
                    argv=argv,
                    env={**made[-1].env, "ORCHESTRATOR_READY_PATH": str(reported)},
                    ready=lambda pid, reported=reported: (
                        reported.exists() and reported.read_text() == str(pid)
                    ),
                )
            )
        for child in kinds:
            argv = tuple(
                f"{READY_MODULE},crash" if keyword == READY_MODULE else keyword for keyword in child.argv
            )
            yield replace(child, argv=argv, fork_server=running_fork_server())

    # Processes.

    def start(self) -> None:
        """Start every worker and wait until they take messages."""
        for name in self.children:
            self._start(name)
        for process in self.processes.values():
            process.wait_ready()

    def _start(self, name: str) -> None:
        self.processes[name] = Process(self.children[name], self.folder / f"{name}.log")

    def mend(self) -> None:
        """Restart dead processes."""
        for name, process in list(self.processes.items()):
            if process.returncode is not None:
                self._start(name)

    def named(self, pid: int) -> str:
        """Return which worker has a process id."""
        return next(name for name, process in self.processes.items() if process.pid == pid)

    def signal(self, name: str, number: signal.Signals) -> None:
        """Send a signal to a worker."""
        self.processes[name].signal(number)

    def kill(self, name: str) -> None:
        """End a worker as `kill -9` does, and wait until it is gone."""
        self.processes[name].kill_group()
        assert self.processes[name].wait(10)

    def logs(self) -> str:
        """Return the logs of all workers."""
        return "".join(self.log(name) for name in self.children)

    def log(self, name: str) -> str:
        """Return the log of a worker."""
        return (self.folder / f"{name}.log").read_text()

    def close(self) -> None:
        """End everything."""
        for process in self.processes.values():
            process.kill_group()
        for process in self.processes.values():
            process.wait(10)
        self.database.engine.dispose()

    # Faults.

    def arm(self, point: str, when: str, nth: int = 1, *, how: str = "kill") -> None:
        """Let the `nth` passage of a point, in whichever worker, be its last (tests/plugins/crash)."""
        (self.armed / f"{point}.{when}.hit").unlink(missing_ok=True)
        # from the last to the first: a fault must not match an earlier point
        for number in range(nth, 0, -1):
            (self.armed / f"{point}.{when}.{number}").write_text(how)

    def hit(self, point: str, when: str) -> int | None:
        """Return the process that a point hit."""
        with contextlib.suppress(FileNotFoundError, ValueError):
            return int((self.armed / f"{point}.{when}.hit").read_text())
        return None

    def release(self, point: str, when: str) -> None:
        """Let the process continue that a point holds."""
        (self.armed / f"{point}.{when}.hit").unlink()

    # Actions and observations of a user.

    def create(self, name: str, resources: Mapping[str, Any], *, message: bool = True, **request: Any) -> str:
        """Ask for a stack; return its uuid. Without `ring` its first message is lost."""
        template = {"heat_template_version": "2021-04-16", "resources": resources}
        body = orjson.dumps({"stack_name": name, "template": template, **request})
        accepted = create_delete.create(self.context, Body(body))
        if message:
            self.dispatcher.publish(accepted.messages)
        return accepted.uuid

    def update(self, name: str, resources: Mapping[str, Any]) -> None:
        """Ask for another template."""
        row = stored_stacks.find(self.database, self.context.caller.project_id, name)
        assert row is not None
        template = {"heat_template_version": "2021-04-16", "resources": resources}
        body = Body(orjson.dumps({"template": template}))
        self.dispatcher.publish(updates.update(self.context, row, body).messages)

    def delete(self, name: str) -> None:
        """Ask for a stack's removal."""
        row = stored_stacks.find(self.database, self.context.caller.project_id, name)
        assert row is not None
        self.dispatcher.publish(create_delete.delete(self.context, row))

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            return connection.execute(query, values).fetchall()

    def state(self, uuid: str) -> str:
        """Return the stack's state, or nothing while the database cannot be reached."""
        with contextlib.suppress(psycopg.OperationalError):
            [(state,)] = self.rows("SELECT action || '_' || status FROM stack WHERE uuid = %s", uuid)
            return str(state)
        return ""

    def reason(self, uuid: str) -> str:
        """Return why the stack is in its state."""
        [(reason,)] = self.rows("SELECT status_reason FROM stack WHERE uuid = %s", uuid)
        return str(reason)

    def wait(
        self, uuid: str, state: str, seconds: float = RECOVERY_SECONDS, *, mending: bool = True
    ) -> float:
        """Wait until the stack is in a state, replacing workers that die; return the seconds it took."""
        started = time.monotonic()

        def there() -> bool:
            if mending:
                self.mend()
            now = self.state(uuid)
            assert not now.endswith("_FAILED") or now == state, self.reason(uuid)
            return now == state

        eventually(there, seconds, lambda: f"{self.state(uuid)}, not {state}: {self.unfinished(uuid)}")
        return time.monotonic() - started

    def unfinished(self, uuid: str) -> list[tuple[Any, ...]]:
        """Return the unfinished nodes of a stack, for messages of failed tests."""
        query = """SELECT n.kind, n.label, n.state, n.blocked_by, n.lost_leases, n.retry_count, n.last_error,
                r.op, r.physical_id
            FROM graph_node n JOIN stack s ON s.id = n.stack_id LEFT JOIN resource r ON r.id = n.resource_id
            WHERE s.uuid = %s AND n.traversal = s.traversal AND n.state <> 'ready' ORDER BY n.id LIMIT 20"""
        return self.rows(query, uuid)

    def not_hit(self, points: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """Return the fault points that no process reached."""
        return [point for point in points if self.hit(*point[:2]) is None]


def eventually(condition: Callable[[], Any], seconds: float, why: Callable[[], str] = str) -> Any:
    """Return the value of `condition` when it becomes true."""
    patience = Patience(seconds)
    while not (result := condition()):
        assert patience.left(), f"it never happened. {why()}"
        time.sleep(0.05)
    return result


def thing(requires: Sequence[str] = (), **properties: Any) -> dict[str, Any]:
    """A Test::Thing as a template has it."""
    snippet: dict[str, Any] = {"type": "Test::Thing", "properties": properties}
    return snippet | ({"depends_on": list(requires)} if requires else {})


def local(requires: Sequence[str] = (), **properties: Any) -> dict[str, Any]:
    """A TestResource as a template has it."""
    snippet: dict[str, Any] = {"type": "OS::Heat::TestResource", "properties": properties}
    return snippet | ({"depends_on": list(requires)} if requires else {})


def tree(width: int = 3) -> dict[str, Any]:
    """Two layers of things, a layer of local resources, and a thing that requires all of them."""
    first = {f"a{i}": thing(value=f"v{i}") for i in range(width)}
    second = {f"b{i}": local(value={"get_attr": [f"a{i}", "value"]}) for i in range(width)}
    third = {f"c{i}": thing(value={"get_attr": [f"b{i}", "output"]}) for i in range(width)}
    names = [{"get_attr": [f"c{i}", "value"]} for i in range(width)]
    return first | second | third | {"last": thing(value={"list_join": ["-", names]})}


def made_once(things: ThingServer, stack: str, resources: Mapping[str, Any]) -> None:
    """Check that exactly one object exists for every thing in the template."""
    expected = sum(1 for snippet in resources.values() if snippet["type"] == "Test::Thing")
    made = things.made(stack)
    assert {name: times for name, times in made.items() if times != 1} == {}
    assert len(made) == expected
    assert len(things.alive(stack)) == expected


@pytest.fixture
def thing_type_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process find Test::Thing as the workers do."""
    monkeypatch.syspath_prepend(str(THING_DIR))


@pytest.fixture
def new_cluster(
    thing_type_known: None, tmp_path: Path, things: ThingServer
) -> Iterator[Callable[..., Cluster]]:
    """Start clusters; they end with the test."""
    made: list[Cluster] = []

    def start(database_url: str, broker_url: str, **options: Any) -> Cluster:
        cluster = Cluster(tmp_path / f"cluster{len(made)}", database_url, broker_url, things, **options)
        made.append(cluster)
        cluster.start()
        return cluster

    yield start
    for cluster in made:
        cluster.close()
