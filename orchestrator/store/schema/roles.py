"""Roles of the embedded PostgreSQL: an administrator, and an application role that owns the database."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import psycopg
from psycopg import sql

from orchestrator.store.connections.outages import OUTAGES

ADMINISTRATOR: Final = "orchestrator_admin"
APPLICATION: Final = "orchestrator"
ROLES: Final = (APPLICATION, ADMINISTRATOR)

FIND_ROLE: Final = "SELECT FROM pg_roles WHERE rolname = %s"
FIND_DATABASE: Final = "SELECT FROM pg_database WHERE datname = %s"
CREATE_ROLE: Final = sql.SQL(
    "CREATE ROLE {role} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS"
)
CREATE_DATABASE: Final = sql.SQL("CREATE DATABASE {name} OWNER {role}")

Url = Callable[[str, str], str]  # of a database and a role


def ensure_database(url: Url, database: str) -> bool:
    """Create the application role and the database if they are missing.

    Return False if the server does not answer within 2 seconds.
    """
    role = sql.Identifier(APPLICATION)
    try:
        with psycopg.connect(url("postgres", ADMINISTRATOR), autocommit=True, connect_timeout=2) as db:
            if db.execute(FIND_ROLE, (APPLICATION,)).fetchone() is None:
                db.execute(CREATE_ROLE.format(role=role))
            if db.execute(FIND_DATABASE, (database,)).fetchone() is None:
                db.execute(CREATE_DATABASE.format(name=sql.Identifier(database), role=role))
    except OUTAGES:
        return False
    return True
