"""The database itself, created in a server that has none yet."""

from __future__ import annotations

from typing import Final

import psycopg
from psycopg import sql

FIND: Final = "SELECT 1 FROM pg_database WHERE datname = %(name)s"
CREATE: Final = sql.SQL("CREATE DATABASE {name}")


def ensure_database(maintenance_url: str, name: str) -> bool:
    """Create a database if it is missing; return False if the server does not answer within 2 seconds."""
    try:
        with psycopg.connect(maintenance_url, autocommit=True, connect_timeout=2) as connection:
            if connection.execute(FIND, {"name": name}).fetchone() is None:
                connection.execute(CREATE.format(name=sql.Identifier(name)))
    except psycopg.OperationalError:
        return False
    return True
