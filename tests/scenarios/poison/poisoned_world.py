"""An installation with two projects, one of which gets a row that cannot be decoded."""

from __future__ import annotations

import traceback
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import orjson
import psycopg
from structlog.testing import capture_logs

from api.app import operations
from api.dependencies import Dependencies
from api.routes import assemble
from orchestrator.engine.messages import RoundMessage
from orchestrator.operations.context import Body
from orchestrator.operations.events import webhooks
from orchestrator.operations.events.webhook_delivery import WebhookSender
from orchestrator.operations.maintenance.jobs import maintenance_jobs
from orchestrator.operations.observation.healing import repair_due_faults
from orchestrator.operations.snapshots import snapshots
from orchestrator.resources.registry import Registry
from orchestrator.security.caller import USER_ROLES, Caller
from orchestrator.store.access import quotas
from orchestrator.store.observation import groups
from tests.scenarios.observation.shelf import Shelf
from tests.scenarios.poison.more_rows import MORE_ROWS
from tests.scenarios.trees import CHILD, text
from tests.scenarios.warm_database import Kept
from tests.scenarios.world import World, test_resource
from tests.template_cluster import as_administrator

VICTIM, NEIGHBOUR = "victim", "neighbour"
PROJECTS = (VICTIM, NEIGHBOUR)
CLOSED = "http://127.0.0.1:9/events"  # nobody listens there
MAX_SWEEPS = 14  # until a stack has to be at rest; a lost lease is counted ten times

# The rows of the victim in a table, by the column that leads to them.
STACKS = "(SELECT id FROM stack WHERE project_id = 'victim')"
REVISIONS = f"(SELECT id FROM revision WHERE stack_id IN {STACKS})"
WHERES = {
    "project_id": "project_id = 'victim'",
    "stack_id": f"stack_id IN {STACKS}",
    "root_id": f"root_id IN {STACKS}",
    "resource_id": f"resource_id IN (SELECT id FROM resource WHERE stack_id IN {STACKS})",
    "revision_id": f"revision_id IN {REVISIONS}",
    "snapshot_id": f"snapshot_id IN (SELECT id FROM snapshot WHERE stack_id IN {STACKS})",
    "hash": f"hash IN (SELECT template_hash FROM revision WHERE id IN {REVISIONS})",
}
COLUMNS = """
SELECT table_name, column_name, is_nullable = 'YES', data_type FROM information_schema.columns
WHERE table_schema = 'public' AND table_name <> 'alembic_version' ORDER BY table_name, ordinal_position
"""
SHAPES = {
    "map": "{}",
    "list": "[]",
    "items": '[1, "x"]',
    "text": '"text"',
    "number": "7",
    "json-null": "null",
    "values": '{"type": [1], "secret": 7, "box": "x", "blocked": "x", "properties": [], "data": 1}',
}
# Columns with ciphertext or JSON in bytes; other bytes are digests, which are compared only.
SEALED = ("sealed", "kept", "adopted", "details", "secret", "credentials", "entries", "body")


OUTPUTS = {"out": {"value": {"get_attr": ["of", "output"]}}}


def resources(label: str, size: int = 1) -> dict[str, Any]:
    """A stack with resources of each kind: observed, local, secret, group with a policy, nested, waiting,
    deployed software.
    """
    return {
        "box": {"type": "Shelf::Box", "properties": {"label": label}},
        "crate": {"type": "Shelf::Crate", "properties": {"label": label}},
        "secret": {"type": "OS::Heat::RandomString", "metadata": {"m": label}},
        "of": test_resource({"get_attr": ["secret", "value"]}, ["box"]),
        "g": {
            "type": "OS::Heat::AutoScalingGroup",
            "properties": {
                "min_size": size,
                "max_size": 9,
                "resource": {"type": "Shelf::Box", "properties": {"label": label}},
            },
        },
        "up": {
            "type": "OS::Heat::ScalingPolicy",
            "properties": {
                "auto_scaling_group_id": {"get_resource": "g"},
                "adjustment_type": "change_in_capacity",
                "scaling_adjustment": 1,
            },
        },
        "nested": {"type": CHILD, "properties": {"value": label}},
        "handle": {"type": "OS::Heat::WaitConditionHandle"},
        "machine": {"type": "OS::Heat::DeployedServer"},
        "script": {"type": "OS::Heat::SoftwareConfig", "properties": {"config": label}},
        "deployment": {
            "type": "OS::Heat::SoftwareDeployment",
            "properties": {
                "config": {"get_resource": "script"},
                "server": {"get_resource": "machine"},
                "input_values": {"label": label},
                "signal_transport": "NO_SIGNAL",
            },
        },
    }


def files(project: str) -> dict[str, str]:
    """The nested template; each project's is stored by itself."""
    box = {"type": "Shelf::Box", "properties": {"label": {"get_param": "value"}}}
    return {CHILD: text({"box": box}, {"o": project})}


GETS = (
    "",
    "?resolve_outputs=false",
    "/resources?nested_depth=3",
    "/resources/box",
    "/resources/secret/metadata",
    "/events?nested_depth=3",
    "/template",
    "/environment",
    "/files",
    "/outputs",
    "/outputs/out",
    "/revisions",
    "/revisions/1",
    "/revisions/1/diff/2",
    "/snapshots",
    "/failures",
    "/progress",
    "/observations",
    "/observations/history",
)


class Case(NamedTuple):
    """A value for a column of the victim's rows."""

    table: str
    column: str
    shape: str
    value: str  # an SQL expression

    def __str__(self) -> str:
        return f"{self.table}.{self.column}={self.shape}"


def where(error: Exception) -> str:
    """Return the functions that an error came from."""
    frames = traceback.extract_tb(error.__traceback__)[-4:]
    return " > ".join(f"{frame.name}:{frame.lineno}" for frame in frames)


@dataclass
class Outcome:
    """The course of a scenario with a poisoned row."""

    sweep_errors: list[str] = field(default_factory=list)
    task_errors: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    answers: dict[str, int] = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=dict)
    logs: list[Any] = field(default_factory=list)


class PoisonedWorld(World):
    """Two equal stacks, each in its own project, with rows in as many tables as possible."""

    def __init__(self, kept: Kept) -> None:
        self.shelf = Shelf()
        super().__init__(
            kept.url,
            types=self.shelf.types(),
            observation_interval_seconds=30,
            webhook_allow_private=True,
            webhook_timeout=1.0,
            quota_wait_seconds=1,
        )
        self.admin = psycopg.connect(
            as_administrator(kept.url), autocommit=True, options="-c session_replication_role=replica"
        )
        publish: Any = self.messages.extend
        made_of = Dependencies(
            self.settings, self.database, self.cipher, Registry.of(), operations(), publish
        )
        self.http = assemble(made_of).test_client()
        self.sender = WebhookSender(self.database, self.cipher, self.settings, self.engine.quarantine)
        for project in PROJECTS:
            self.populate(project)
        self.damage_and_observe()
        self.kept_objects = deepcopy(self.shelf.objects)
        self.backup()

    def close(self) -> None:
        self.admin.execute("DROP SCHEMA backup CASCADE")
        self.admin.close()
        super().close()

    def become(self, project: str) -> None:
        self.caller = Caller(project, "tester", USER_ROLES)
        self.context = replace(self.context, caller=self.caller)

    def populate(self, project: str) -> None:
        self.become(project)
        self.create(
            "s",
            resources("blue"),
            files=files(project),
            parameters=self.parameters(),
            environment={"parameters": {"h": project}},
            outputs=OUTPUTS,
            tags="t",
        )
        self.deliver_all()
        self.change("blue", size=1)
        self.deliver_all()
        stack = self.stack_row("s")
        self.messages += snapshots.take(self.context, stack, Body(b"{}")).messages
        self.deliver_all()
        for rule in (
            {"policy": {"mode": "heal", "stack": str(stack.uuid)}},
            {"accept": {"path": "s.box.label", "stack": str(stack.uuid), "reason": "r"}},
        ):
            self.rule(rule)
        for of in ({}, {"stack": str(stack.uuid)}):
            webhooks.create(self.context, Body(orjson.dumps({"url": CLOSED, **of})))
        with self.database.borrow() as db:
            quotas.set_maximum(db, project, "stacks", 50)

    def rule(self, body: dict[str, Any]) -> None:
        stack_id = self.stack_row("s").id
        [(kind, _)] = body.items()
        values = {"p": self.caller.project_id, "s": stack_id, "k": kind}
        with self.database.borrow() as db:
            db.execute(
                "INSERT INTO observation_rule (uuid, project_id, kind, mode, stack_id, type, resource, path,"
                " created_by) VALUES (gen_random_uuid(), %(p)s, %(k)s,"
                " CASE WHEN %(k)s = 'policy' THEN 'heal' END, %(s)s, '', '',"
                " CASE WHEN %(k)s = 'policy' THEN '' ELSE 'label' END, 'u')",
                values,
            )

    # Damage, rounds and repairs.

    def damage_and_observe(self) -> None:
        """Rounds find a missing object and a changed object of each project, before any repair."""
        self.rounds()
        missing = self.rows("SELECT physical_id FROM resource WHERE name = 'crate'")
        changed = self.rows("SELECT physical_id FROM resource WHERE name = 'box'")
        for row in missing:
            del self.shelf.objects[row.physical_id]
        for row in changed:
            self.shelf.objects[row.physical_id]["label"] = "red"
        self.rounds()
        for statement in MORE_ROWS:
            self.admin.execute(statement)
        for project in PROJECTS:
            self.become(project)
            self.signal("s", "up")

    def rounds(self, outcome: Outcome | None = None) -> None:
        db = self.database.check_connection(durable=True)
        groups.start_discoveries(db, self.settings.region_name, 0.0)
        for kind in ("discovery", "lists", "single"):
            db.execute(
                "UPDATE observation_group SET due_at = now(), enqueued_at = NULL, leased_until = NULL,"
                " lease = NULL WHERE kind = %s",
                (kind,),
            )
            for message in groups.due(db, 100):
                if isinstance(message, RoundMessage):
                    self.attempt(message, outcome)

    def repairs(self) -> None:
        db = self.database.check_connection(durable=True)
        db.execute("UPDATE repair SET due_at = now() WHERE due_at IS NOT NULL")
        self.messages += repair_due_faults(db, self.types)

    # The rows.

    def cases(self) -> list[Case]:
        """Return every value that no column of the catalogue may have, in the order of the catalogue."""
        found: list[Case] = []
        for table, column, nullable, type_ in self.admin.execute(COLUMNS).fetchall():
            if nullable:
                found.append(Case(table, column, "null", "NULL"))
            if type_ in ("json", "jsonb"):
                found += [Case(table, column, name, f"'{text_}'::{type_}") for name, text_ in SHAPES.items()]
            elif type_ == "bytea" and column in SEALED:
                found.append(Case(table, column, "bytes", r"'\x7b'"))
        return found

    def tables(self) -> list[str]:
        rows = self.admin.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'alembic_version'"
        )
        return [name for (name,) in rows.fetchall()]

    def backup(self) -> None:
        self.admin.execute("CREATE SCHEMA IF NOT EXISTS backup")
        for table in self.tables():
            self.admin.execute(f"CREATE TABLE backup.{table} AS TABLE {table}")

    def restore(self) -> None:
        for connection in (True, False):
            db = self.database.check_connection(durable=connection)
            if db.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                db.rollback()
        statements = [
            f"DELETE FROM {table}; INSERT INTO {table} SELECT * FROM backup.{table}"
            for table in self.tables()
        ]
        self.admin.execute(";".join(statements))
        self.shelf.objects = deepcopy(self.kept_objects)
        self.messages.clear()
        self.engine = self.new_engine()
        self.sweep.jobs = maintenance_jobs()

    def poison(self, case: Case) -> int:
        """Give the victim's rows a value; return the number of rows, except those with a constraint."""
        table, column, _, value = case
        names = {name for (name,) in self.admin.execute(
            "SELECT column_name FROM information_schema.columns WHERE table_name = %s"
            " AND table_schema = 'public'", (table,))}  # fmt: skip
        where = next((part for key, part in WHERES.items() if key in names), "true")
        changed = 0
        for (place,) in self.admin.execute(f"SELECT ctid::text FROM {table} WHERE {where}").fetchall():
            with suppress(psycopg.IntegrityError):  # a constraint forbids it
                changed += self.admin.execute(
                    f"UPDATE {table} SET \"{column}\" = {value} WHERE ctid = '{place}'"
                ).rowcount
        return changed

    # The course.

    def attempt(self, message: Any, outcome: Outcome | None) -> None:
        """Deliver a message as Celery does: an unexpected error is logged, and the message is lost."""
        try:
            self.deliver_one(message)
        except Exception as error:
            if outcome is None:
                raise
            outcome.task_errors.append(f"{message}: {error!r} in {where(error)}")

    def attempt_sweep(self, outcome: Outcome) -> None:
        try:
            self.sweep_once()
        except Exception as error:
            outcome.sweep_errors.append(repr(error))
            self.sweep._db = None

    def settle(self, outcome: Outcome) -> None:
        for _ in range(MAX_SWEEPS):
            for _ in range(600):
                if not self.messages:
                    break
                self.attempt(self.messages.pop(0), outcome)
            else:
                outcome.task_errors.append("the messages do not end")
                self.messages.clear()
            self.forget_leases()
            self.attempt_sweep(outcome)
            if not self.messages:
                self.attempt_sweep(outcome)
            if not self.messages:
                return

    def course(self) -> Outcome:
        """Let everything happen that reads the victim's rows."""
        outcome = Outcome()
        with capture_logs() as logs:
            self.run_course(outcome)
        outcome.logs = [entry for entry in logs if entry["log_level"] == "error"]
        return outcome

    def run_course(self, outcome: Outcome) -> None:
        self.read(outcome)
        self.settle(outcome)
        self.rounds(outcome)
        try:
            self.repairs()
        except Exception as error:
            outcome.sweep_errors.append(f"repairs: {error!r}")
        self.settle(outcome)
        for slow in (True, False):
            try:
                for claimed, lease in self.sender.claim(10, slow=slow):
                    try:
                        self.sender.deliver_pending(claimed, lease)
                    except Exception as error:
                        outcome.task_errors.append(f"webhook: {error!r}")
            except Exception as error:
                outcome.sweep_errors.append(f"webhooks: {error!r}")
        for project in PROJECTS:
            self.become(project)
            self.request(outcome, project)
        self.settle(outcome)
        for project in PROJECTS:
            self.become(project)
            rows = self.rows(
                "SELECT action || '_' || status AS state FROM stack"
                " WHERE project_id = :p AND owner_id IS NULL AND deleted_at IS NULL",
                p=project,
            )
            outcome.states[project] = ",".join(row.state for row in rows)

    def begin(self) -> None:
        """Bring the victim into the middle of an update."""
        self.become(VICTIM)
        self.request(Outcome(), VICTIM)
        for _ in range(8):
            if self.messages:
                self.attempt(self.messages.pop(0), None)

    def read(self, outcome: Outcome) -> None:
        """Read both stacks over HTTP."""
        for project in PROJECTS:
            [row] = self.rows("SELECT uuid FROM stack WHERE project_id = :p AND owner_id IS NULL", p=project)
            paths = [f"/stacks/s/{row.uuid}{path}" for path in GETS]
            paths += ["/stacks", "/repairs", "/webhooks", "/software_configs", "/software_deployments"]
            paths += [f"/software_{kind}s/{one}" for kind, one in self.software(project)]
            for path in paths:
                answer = self.http.get(f"/v1/{project}{path}", follow_redirects=True)
                outcome.answers[f"{project}{path.replace(str(row.uuid), 'ID')}"] = answer.status_code

    def software(self, project: str) -> list[tuple[str, str]]:
        """Return the configs and deployments of a project."""
        rows = self.rows(
            "SELECT 'config' AS kind, uuid::text AS id FROM software_config WHERE project_id = :p"
            " UNION ALL SELECT 'deployment', uuid::text FROM software_deployment WHERE project_id = :p"
            " UNION ALL SELECT 'deployment', 'metadata/' || r.physical_id FROM resource r"
            " JOIN stack s ON s.id = r.stack_id WHERE r.name = 'machine' AND s.project_id = :p",
            p=project,
        )
        return [(row.kind, row.id) for row in rows]

    def request(self, outcome: Outcome, project: str) -> None:
        """Send a signal and an update; refusals are part of the outcome."""
        for ask in (partial(self.signal, "s", "up"), partial(self.change, "green", size=2)):
            try:
                ask()
            except Exception as error:
                outcome.refused.append(f"{project}: {error!r}")

    def change(self, label: str, *, size: int) -> None:
        """Request the update of the stack of this caller's project."""
        self.update(
            "s",
            resources(label, size),
            files=files(self.caller.project_id),
            parameters=self.parameters(),
            environment={"parameters": {"h": label}},
            outputs=OUTPUTS,
            tags="t",
        )

    def parameters(self) -> dict[str, Any]:
        """The declared parameters: the stored template of each project is another one."""
        default = self.caller.project_id
        return {"p": {"type": "string", "default": default}, "h": {"type": "string", "hidden": True}}
