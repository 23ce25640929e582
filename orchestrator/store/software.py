"""Software configs, deployments and their agents in SQL (docs/internals/rest-api.md §12).

Every statement is scoped by project. Statements that belong together run in a transaction of the caller; a
row that is read to be written is read with `lock`.
"""

from __future__ import annotations

import datetime as dt
import uuid as uuid_
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.json_types import JsonObject
from orchestrator.store.tables.software import LARGE

Db = Connection[TupleRow]

CONFIG: Final = """c.id, c.uuid::text, c.project_id, c.name, c."group", c.sealed, c.secret, c.derived,
    c.created_at"""
ADD_CONFIG = """
INSERT INTO software_config (uuid, project_id, name, "group", sealed, secret, derived)
VALUES (%(uuid)s::uuid, %(project_id)s, %(name)s::text, %(group)s::text, %(sealed)s::bytea,
    %(secret)s::boolean, %(derived)s::boolean)
ON CONFLICT (uuid) DO NOTHING RETURNING id
"""
GET_CONFIG = f"""
SELECT {CONFIG} FROM software_config c
WHERE c.uuid = %(uuid)s::uuid AND (c.project_id = %(project_id)s::text OR %(project_id)s::text IS NULL)
"""
KEEP_CONFIG = f"{GET_CONFIG} FOR SHARE OF c"
# The lock excludes a concurrent deployment of the config.
LOCK_CONFIG = """
SELECT c.id, EXISTS (SELECT 1 FROM software_deployment d WHERE d.config_id = c.id)
FROM software_config c WHERE c.uuid = %(uuid)s::uuid AND c.project_id = %(project_id)s FOR UPDATE OF c
"""
REMOVE_CONFIG = "DELETE FROM software_config c WHERE c.id = %(id)s"
DROP_DERIVED = """
DELETE FROM software_config c WHERE c.id = %(id)s AND c.derived
    AND NOT EXISTS (SELECT 1 FROM software_deployment d WHERE d.config_id = c.id)
"""
ALL_CONFIGS = f"""
SELECT {CONFIG} FROM software_config c
WHERE (%(uuid)s::uuid IS NULL OR (c.created_at, c.id) < (
    SELECT m.created_at, m.id FROM software_config m WHERE m.uuid = %(uuid)s::uuid))
ORDER BY c.created_at DESC, c.id DESC LIMIT %(limit)s::bigint
"""
LIST_CONFIGS = f"""
SELECT {CONFIG} FROM software_config c WHERE c.project_id = %(project_id)s
    AND (%(uuid)s::uuid IS NULL OR (c.created_at, c.id) < (
        SELECT m.created_at, m.id FROM software_config m
        WHERE m.uuid = %(uuid)s::uuid AND m.project_id = %(project_id)s))
ORDER BY c.created_at DESC, c.id DESC LIMIT %(limit)s::bigint
"""
COUNT = "SELECT count(*) FROM {table} WHERE project_id = %(project_id)s"
# Only large configs are added up, in the index: the number of configs bounds the others.
LARGE_BYTES = f"""
SELECT coalesce(sum(octet_length(sealed)), 0) FROM software_config
WHERE project_id = %(project_id)s AND {LARGE}
"""

DEPLOYMENT: Final = """
    d.id, d.uuid::text, d.project_id, d.server_id, c.uuid::text, d.config_id, d.action, d.status,
    d.status_reason, d.sealed, d.secret, d.stack_id, d.resource_id, d.operation, d.server_noted,
    d.created_at, d.updated_at"""
FROM_DEPLOYMENT: Final = f"""
SELECT {DEPLOYMENT} FROM software_deployment d JOIN software_config c ON c.id = d.config_id
"""
BY_UUID: Final = "WHERE d.uuid = %(uuid)s::uuid AND d.project_id = %(project_id)s"
GET_DEPLOYMENT = f"{FROM_DEPLOYMENT}{BY_UUID}"
LOCK_DEPLOYMENT = f"{GET_DEPLOYMENT} FOR UPDATE OF d"
LIST_DEPLOYMENTS = f"""{FROM_DEPLOYMENT}
WHERE d.project_id = %(project_id)s AND (%(server_id)s::text IS NULL OR d.server_id = %(server_id)s)
ORDER BY d.created_at, d.id
"""
PUBLISHED = f"""
SELECT {CONFIG} FROM software_deployment d JOIN software_config c ON c.id = d.config_id
WHERE d.project_id = %(project_id)s AND d.server_id = %(server_id)s
ORDER BY c.name NULLS FIRST, d.created_at, d.id
"""
# Whether the server is a resource of ours: then its deletion is noticed.
NOTED: Final = """EXISTS (SELECT 1 FROM software_agent a
        WHERE a.uuid = %(server_uuid)s::uuid AND a.project_id = %(project_id)s AND a.is_server)"""
ADD_DEPLOYMENT = f"""
INSERT INTO software_deployment (uuid, project_id, server_id, config_id, action, status, status_reason,
    stack_user_project_id, sealed, secret, stack_id, resource_id, operation, server_noted)
SELECT %(uuid)s::uuid, %(project_id)s, %(server_id)s, %(config_id)s::bigint, %(action)s::text,
    %(status)s::text, %(status_reason)s::text, %(stack_user_project_id)s::text, %(sealed)s::bytea,
    %(secret)s::boolean, %(stack_id)s::bigint, %(resource_id)s::bigint, %(operation)s::text,
    {NOTED}
ON CONFLICT (uuid) DO NOTHING RETURNING id
"""
WRITE_DEPLOYMENT = f"""
UPDATE software_deployment d
SET config_id = %(config_id)s::bigint, action = %(action)s::text, status = %(status)s::text,
    status_reason = %(status_reason)s::text, sealed = %(sealed)s::bytea, secret = %(secret)s::boolean,
    stack_id = %(stack_id)s::bigint, resource_id = %(resource_id)s::bigint, operation = %(operation)s::text,
    server_noted = d.server_noted OR {NOTED},
    updated_at = now()
WHERE d.id = %(id)s
"""
REMOVE_DEPLOYMENT = "DELETE FROM software_deployment d WHERE d.id = %(id)s"

# Pending work of a deleted server cannot be done any more, and no resource has to wait for it.
LOST_SERVER = """
UPDATE software_deployment d SET status = 'COMPLETE', status_reason = 'The server is gone', updated_at = now()
WHERE d.project_id = %(project_id)s AND d.server_id = %(server_id)s
    AND d.action = 'DELETE' AND d.status = 'IN_PROGRESS'
RETURNING d.stack_id, d.resource_id
"""
ADD_AGENT = """
INSERT INTO software_agent (uuid, project_id, is_server, sealed)
VALUES (%(uuid)s::uuid, %(project_id)s, %(is_server)s, %(sealed)s::bytea)
ON CONFLICT (uuid) DO UPDATE SET is_server = software_agent.is_server OR excluded.is_server
RETURNING sealed
"""
GET_AGENT = """
SELECT a.sealed, a.is_server FROM software_agent a
WHERE a.uuid = %(uuid)s::uuid AND a.project_id = %(project_id)s
"""
REMOVE_AGENT = "DELETE FROM software_agent a WHERE a.uuid = %(uuid)s::uuid AND a.project_id = %(project_id)s"

VALUES = """
SELECT r.properties, r.data, r.metadata, convert_from(r.sealed, 'UTF8') FROM resource r WHERE r.id = %(id)s
"""


@dataclass(frozen=True, slots=True)
class ConfigRow:
    """A config; its content is encrypted."""

    id: int
    uuid: str
    project_id: str
    name: str | None
    group: str | None
    sealed: bytes
    secret: bool
    derived: bool  # made for a deployment
    created_at: dt.datetime


@dataclass(frozen=True, slots=True)
class DeploymentRow:
    """A deployment; its values are encrypted."""

    id: int
    uuid: str
    project_id: str
    server_id: str
    config_uuid: str
    config_id: int
    action: str | None
    status: str | None
    status_reason: str | None
    sealed: bytes
    secret: bool
    stack_id: int | None
    resource_id: int | None
    operation: str | None
    server_noted: bool
    created_at: dt.datetime
    updated_at: dt.datetime | None

    def values(self) -> JsonObject:
        """The parameters of `write_deployment` with the present values."""
        return {
            name: getattr(self, name)
            for name in (
                "id",
                "project_id",
                "server_id",
                "config_id",
                "action",
                "status",
                "status_reason",
                "sealed",
                "secret",
                "stack_id",
                "resource_id",
                "operation",
            )
        }


def add_config(db: Db, values: Mapping[str, object]) -> int | None:
    """Insert a config unless it exists; return the id of its row, None if it exists."""
    row = db.execute(ADD_CONFIG, values).fetchone()
    return None if row is None else row[0]


def get_config(db: Db, project_id: str | None, uuid: str, *, keep: bool = False) -> ConfigRow | None:
    """Return a config of the project, or of any project for None.

    `keep`: it cannot be deleted before the transaction ends.
    """
    if not is_uuid(uuid):
        return None
    values = {"uuid": uuid, "project_id": project_id}
    row = db.execute(KEEP_CONFIG if keep else GET_CONFIG, values).fetchone()
    return None if row is None else _config(row)


def list_configs(db: Db, project_id: str | None, limit: int | None, marker: str | None) -> list[ConfigRow]:
    """Return the project's configs, the newest first, those after the config `marker` if it exists.

    None: the configs of all projects.
    """
    position = get_config(db, project_id, marker) if marker else None
    values = {"project_id": project_id, "limit": limit, "uuid": None if position is None else position.uuid}
    statement = ALL_CONFIGS if project_id is None else LIST_CONFIGS
    return [_config(row) for row in db.execute(statement, values).fetchall()]


def remove_config(db: Db, project_id: str, uuid: str) -> bool | None:
    """Delete a config; return False if a deployment refers to it, None if it does not exist. Run in a
    transaction.
    """
    if not is_uuid(uuid):
        return None
    row = db.execute(LOCK_CONFIG, {"uuid": uuid, "project_id": project_id}).fetchone()
    if row is None or row[1]:
        return None if row is None else False
    db.execute(REMOVE_CONFIG, {"id": row[0]})
    return True


def drop_derived(db: Db, config_id: int) -> None:
    """Delete the config that was derived for a deployment, by the id of its row."""
    db.execute(DROP_DERIVED, {"id": config_id})


def count_configs(db: Db, project_id: str) -> int:
    """Return the number of configs of a project."""
    return _number(db, COUNT.format(table="software_config"), project_id)


def count_deployments(db: Db, project_id: str) -> int:
    """Return the number of deployments of a project."""
    return _number(db, COUNT.format(table="software_deployment"), project_id)


def large_bytes(db: Db, project_id: str) -> int:
    """Return the size of the large configs of a project, encrypted."""
    return _number(db, LARGE_BYTES, project_id)


def _number(db: Db, query: str, project_id: str) -> int:
    row = db.execute(query, {"project_id": project_id}).fetchone()
    assert row is not None
    return int(row[0])


def get_deployment(db: Db, project_id: str, uuid: str, *, lock: bool = False) -> DeploymentRow | None:
    """Return a deployment of the project; with `lock` it cannot be written by others before the transaction
    ends.
    """
    if not is_uuid(uuid):
        return None
    values = {"uuid": uuid, "project_id": project_id}
    row = db.execute(LOCK_DEPLOYMENT if lock else GET_DEPLOYMENT, values).fetchone()
    return None if row is None else _deployment(row)


def list_deployments(db: Db, project_id: str, server_id: str | None) -> list[DeploymentRow]:
    """Return the deployments of the project, or of a server, the oldest first."""
    values = {"project_id": project_id, "server_id": server_id}
    return [_deployment(row) for row in db.execute(LIST_DEPLOYMENTS, values).fetchall()]


def published(db: Db, project_id: str, server_id: str) -> list[ConfigRow]:
    """Return the configs published to a server, by their names."""
    rows = db.execute(PUBLISHED, {"project_id": project_id, "server_id": server_id}).fetchall()
    return [_config(row) for row in rows]


def add_deployment(db: Db, values: Mapping[str, object]) -> bool:
    """Insert a deployment; return False if it exists."""
    return db.execute(ADD_DEPLOYMENT, _with_server(values)).fetchone() is not None


def write_deployment(db: Db, values: Mapping[str, object]) -> None:
    """Write a locked deployment."""
    db.execute(WRITE_DEPLOYMENT, _with_server(values))


def _with_server(values: Mapping[str, Any]) -> dict[str, Any]:
    server_id = values["server_id"]
    return {**values, "server_uuid": server_id if is_uuid(server_id) else None}


def remove_deployment(db: Db, deployment_id: int) -> None:
    """Delete a locked deployment."""
    db.execute(REMOVE_DEPLOYMENT, {"id": deployment_id})


def lost_server(db: Db, project_id: str, server_id: str) -> list[tuple[int, int]]:
    """Give up pending work of a deleted server; return the resources to notify: ids of stack and resource."""
    rows = db.execute(LOST_SERVER, {"project_id": project_id, "server_id": server_id}).fetchall()
    return [(row[0], row[1]) for row in rows if row[1] is not None]


def add_agent(db: Db, project_id: str, uuid: str, sealed: bytes, *, is_server: bool) -> bytes:
    """Insert an agent's credentials unless it has some; return its credentials."""
    values = {"uuid": uuid, "project_id": project_id, "sealed": sealed, "is_server": is_server}
    row = db.execute(ADD_AGENT, values).fetchone()
    assert row is not None
    return bytes(row[0])


def get_agent(db: Db, project_id: str, uuid: str) -> tuple[bytes, bool] | None:
    """Return an agent's credentials, and whether it is a server's."""
    if not is_uuid(uuid):
        return None
    row = db.execute(GET_AGENT, {"uuid": uuid, "project_id": project_id}).fetchone()
    return None if row is None else (bytes(row[0]), row[1])


def remove_agent(db: Db, project_id: str, uuid: str) -> None:
    """Delete an agent."""
    db.execute(REMOVE_AGENT, {"uuid": uuid, "project_id": project_id})


def values_of(db: Db, resource_id: int) -> Sequence[Any] | None:
    """Return a resource's properties, data and metadata, and all of them encrypted; None if it is gone."""
    return db.execute(VALUES, {"id": resource_id}).fetchone()


def is_uuid(text: str) -> bool:
    """Whether a text has the form of an id."""
    try:
        uuid_.UUID(text)
    except (ValueError, AttributeError, TypeError):
        return False
    return True


def _config(row: TupleRow) -> ConfigRow:
    return ConfigRow(*row[:5], bytes(row[5]), *row[6:])  # type: ignore[call-arg]  # a row of Any


def _deployment(row: TupleRow) -> DeploymentRow:
    return DeploymentRow(*row[:9], bytes(row[9]), *row[10:])  # type: ignore[call-arg]  # as above
