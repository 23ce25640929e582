"""Roles of the embedded PostgreSQL: an administrator, and an application role that owns the database.

Version 0.1 had a single role, `orchestrator`, the superuser that initdb creates. PostgreSQL never removes the
superuser attribute of that role, and a session cannot rename its own role. Its data directory is therefore
converted by a temporary superuser, which renames the role to that of the administrator. Each step can be
repeated after an interruption; the owner of the database changes last.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, LiteralString

import psycopg
from psycopg import sql

from orchestrator.store.connections.outages import OUTAGES

ADMINISTRATOR: Final = "orchestrator_admin"
APPLICATION: Final = "orchestrator"
RENAMER: Final = "orchestrator_upgrade"  # exists only during the conversion
ROLES: Final = (APPLICATION, ADMINISTRATOR, RENAMER)

FIND_ROLE: Final = "SELECT rolsuper FROM pg_roles WHERE rolname = %s"
FIND_OWNER: Final = "SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = %s"
CREATE_SUPERUSER: Final = sql.SQL("CREATE ROLE {role} LOGIN SUPERUSER")
CREATE_APPLICATION: Final = sql.SQL(
    "CREATE ROLE {role} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS"
)
RENAME: Final = sql.SQL("ALTER ROLE {role} RENAME TO {name}")
DROP_ROLE: Final = sql.SQL("DROP ROLE IF EXISTS {role}")
CREATE_DATABASE: Final = sql.SQL("CREATE DATABASE {name} OWNER {role}")
SET_OWNER: Final = sql.SQL("ALTER DATABASE {name} OWNER TO {role}")

# Objects outside of the system schemas. Sequences of columns, indexes and array types follow their table.
SET_OWNERS: Final[LiteralString] = """
DO $$
DECLARE statement text;
BEGIN
    FOR statement IN
        SELECT format('ALTER SCHEMA %I OWNER TO orchestrator', nspname)
        FROM pg_namespace
        WHERE nspowner = 'orchestrator_admin'::regrole
            AND nspname !~ '^(pg_|information_schema$)'
        UNION ALL
        SELECT format('ALTER %s %s OWNER TO orchestrator',
            CASE relkind WHEN 'v' THEN 'VIEW' WHEN 'm' THEN 'MATERIALIZED VIEW' WHEN 'S' THEN 'SEQUENCE'
                ELSE 'TABLE' END, c.oid::regclass)
        FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
        WHERE relowner = 'orchestrator_admin'::regrole AND relkind IN ('r', 'p', 'v', 'm', 'S')
            AND nspname !~ '^(pg_|information_schema$)'
            AND NOT EXISTS (SELECT FROM pg_depend d
                WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype IN ('a', 'i', 'e'))
        UNION ALL
        SELECT format('ALTER TYPE %s OWNER TO orchestrator', t.oid::regtype)
        FROM pg_type t JOIN pg_namespace n ON n.oid = typnamespace LEFT JOIN pg_class c ON c.oid = typrelid
        WHERE typowner = 'orchestrator_admin'::regrole
            AND nspname !~ '^(pg_|information_schema$)'
            AND (typtype IN ('d', 'e', 'r') OR typtype = 'c' AND relkind = 'c')
            AND NOT EXISTS (SELECT FROM pg_depend d
                WHERE d.classid = 'pg_type'::regclass AND d.objid = t.oid AND d.deptype IN ('i', 'e'))
        UNION ALL
        SELECT format('ALTER ROUTINE %s OWNER TO orchestrator', p.oid::regprocedure)
        FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace
        WHERE proowner = 'orchestrator_admin'::regrole
            AND nspname !~ '^(pg_|information_schema$)'
            AND NOT EXISTS (SELECT FROM pg_depend d
                WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype IN ('i', 'e'))
    LOOP
        EXECUTE statement;
    END LOOP;
END $$
"""

Url = Callable[[str, str], str]  # of a database and a role


def ensure_database(url: Url, database: str) -> bool:
    """Create the roles and the database if they are missing, and convert those of version 0.1.

    Return False if the server does not answer within 2 seconds.
    """
    try:
        with _administrator(url) as db:
            db.execute(DROP_ROLE.format(role=sql.Identifier(RENAMER)))
            _create_role(db, APPLICATION, CREATE_APPLICATION)
            names = {"name": sql.Identifier(database), "role": sql.Identifier(APPLICATION)}
            owner = db.execute(FIND_OWNER, (database,)).fetchone()
            if owner is None:
                db.execute(CREATE_DATABASE.format(**names))
            elif owner[0] != APPLICATION:
                with _connect(url(database, ADMINISTRATOR)) as inside:
                    inside.execute(SET_OWNERS)
                db.execute(SET_OWNER.format(**names))
    except OUTAGES:
        return False
    return True


def _administrator(url: Url) -> psycopg.Connection[tuple[object, ...]]:
    """Return a connection of the administrator; rename the superuser of version 0.1 if there is none."""
    try:
        return _connect(url("postgres", ADMINISTRATOR))
    except psycopg.OperationalError as error:
        if f'role "{ADMINISTRATOR}" does not exist' not in str(error):
            raise
    with _connect(url("postgres", APPLICATION)) as db:
        _create_role(db, RENAMER, CREATE_SUPERUSER)
    with _connect(url("postgres", RENAMER)) as db:
        db.execute(RENAME.format(role=sql.Identifier(APPLICATION), name=sql.Identifier(ADMINISTRATOR)))
    return _connect(url("postgres", ADMINISTRATOR))


def _create_role(db: psycopg.Connection[tuple[object, ...]], role: str, statement: sql.SQL) -> None:
    if db.execute(FIND_ROLE, (role,)).fetchone() is None:
        db.execute(statement.format(role=sql.Identifier(role)))


def _connect(url: str) -> psycopg.Connection[tuple[object, ...]]:
    return psycopg.connect(url, autocommit=True, connect_timeout=2)
