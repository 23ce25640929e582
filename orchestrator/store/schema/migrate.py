"""Migrations: bring a database to the schema that this code needs. A missing database is created first.

The migrations are in `alembic/` of the source tree and in the folder `migrations` of the package in the
wheel. To add a migration after a change in `tables/`, set ORCHESTRATOR_DATABASE_URL to a database at the head
and run `alembic revision --autogenerate --rev-id 0060 -m "summary"`. Then review the result: autogenerate
detects neither CHECK constraints nor storage settings (tests/integration/store/test_migrations.py does).
"""

from __future__ import annotations

import logging

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from sqlalchemy import Connection, NullPool, text
from sqlalchemy.dialects.postgresql.base import ischema_names

from orchestrator.errors import Misconfigured
from orchestrator.logs import logger
from orchestrator.store.connections.engines import new_engine
from orchestrator.store.connections.outages import OUTAGES, Session
from orchestrator.store.connections.sessions import open_session
from orchestrator.store.schema.collation import warn_of_other
from orchestrator.store.schema.version import folder, head, in_one_line, require_known, unreachable
from orchestrator.store.tables.base import Xid8

ADVISORY_LOCK = 0x6F7263685F6D6967  # a single upgrade at a time per database
LOCK_TIMEOUT = "5s"  # a migration that cannot get its lock fails instead of blocking all later statements


logging.getLogger("alembic").setLevel(logging.WARNING)  # it logs every check of the version
ischema_names["xid8"] = Xid8  # so that comparing a database with the models gives no warning


def upgrade(url: str) -> None:
    """Upgrade the database to `head()`; may be repeated, and run in two places at once. Log a warning if the
    database does not have the recommended collation.

    Raises:
        Misconfigured: the database is unreachable, newer than this code, older than its first migration, or
            behind an unsuitable connection pooler.
    """
    with connect(url) as connection:
        connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": ADVISORY_LOCK})
        revision_ = MigrationContext.configure(connection).get_current_revision()
        if revision_ is not None:
            require_known(revision_)
        connection.execute(text(f"SET lock_timeout = '{LOCK_TIMEOUT}'"))
        connection.commit()
        config = Config()
        config.set_main_option("script_location", str(folder()).replace("%", "%%"))
        config.attributes["connection"] = connection
        try:
            command.upgrade(config, "head")
            if revision_ != head():
                logger().info("schema_upgraded", before=revision_, now=head())
            warn_of_other(connection)
        except OUTAGES as error:
            raise Misconfigured(f"the upgrade did not finish, run it again: {in_one_line(error)}") from error


def connect(url: str) -> Connection:
    """Return a connection for migrations.

    Raises:
        Misconfigured: the database is unreachable, or behind an unsuitable connection pooler.
    """
    engine = new_engine(lambda: open_session(lambda: Session.connect(url)), poolclass=NullPool)
    try:
        return engine.connect()
    except OUTAGES as error:
        raise unreachable(error) from error
