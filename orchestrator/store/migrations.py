"""Which schema a database has, which one this code needs, and how to get from the first to the second.

The migrations are in `alembic/` of the source tree and in `orchestrator/migrations/` of the wheel. To add one
after a change of `models.py`, with ORCHESTRATOR_DATABASE_URL naming a database that is at the head:
`alembic revision --autogenerate --rev-id 0002 -m "what it does"`. Then read what it wrote: it sees
neither CHECK nor storage settings (tests/integration/test_migrations.py does).
"""

from __future__ import annotations

import logging
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, NullPool, create_engine, text
from sqlalchemy.dialects.postgresql.base import ischema_names
from sqlalchemy.engine import make_url
from sqlalchemy.exc import OperationalError

from orchestrator.errors import Misconfigured
from orchestrator.store.base import Xid8
from orchestrator.telemetry import logger

ADVISORY_LOCK = 0x6F7263685F6D6967  # one upgrade at a time per database
LOCK_TIMEOUT = "5s"  # a migration that cannot get its lock gives up rather than stop everybody behind it


logging.getLogger("alembic").setLevel(logging.WARNING)  # it tells of every look at the version
ischema_names["xid8"] = Xid8  # so that a database is compared with the models without a warning


def head() -> str:
    """Return the version this code needs."""
    return str(_scripts().get_current_head())


def current(url: str) -> str | None:
    """Return the version of the schema at `url`, None when there is none.

    Raises:
        Misconfigured: the database cannot be reached.
    """
    with _connect(url) as connection:
        return MigrationContext.configure(connection).get_current_revision()


def upgrade(url: str) -> None:
    """Bring the database to `head()`; safe to run twice, and in two places at once.

    Raises:
        Misconfigured: the database cannot be reached, or is newer than this code.
    """
    with _connect(url) as connection:
        connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": ADVISORY_LOCK})
        found = MigrationContext.configure(connection).get_current_revision()
        if found is not None and not _known(found):
            raise _newer(found)
        connection.execute(text(f"SET lock_timeout = '{LOCK_TIMEOUT}'"))
        connection.commit()
        config = Config()
        config.set_main_option("script_location", str(_folder()).replace("%", "%%"))
        config.attributes["connection"] = connection
        try:
            command.upgrade(config, "head")
            if found != head():
                logger().info("schema_upgraded", before=found, now=head())
        except OperationalError as error:
            raise Misconfigured(f"the upgrade did not finish, run it again: {_line(error)}") from error


def require_current(url: str) -> None:
    """Return when the schema is the one this code needs; the API and the workers ask before they start.

    Raises:
        Misconfigured: the schema is older or newer, or the database cannot be reached.
    """
    found, needed = current(url), head()
    if found == needed:
        return
    if found is not None and not _known(found):
        raise _newer(found)
    has = f"schema {found}" if found else "no schema"
    raise Misconfigured(f"the database has {has} and this version needs {needed}: run `orchestrator migrate`")


def _newer(found: str) -> Misconfigured:
    return Misconfigured(
        f"the database has schema {found}, newer than the {head()} this version knows: upgrade the software"
    )


def _line(error: OperationalError) -> str:
    """Return the database's own words in one line."""
    return " ".join(str(error.orig).split())


def _known(revision: str) -> bool:
    return any(script.revision == revision for script in _scripts().walk_revisions())


def _folder() -> Path:
    """Return where the migrations are, in the wheel or in the tree."""
    package = Path(__file__).resolve().parents[1]
    for place in (package / "migrations", package.parent / "alembic"):
        if (place / "env.py").is_file():
            return place
    raise Misconfigured(f"the migrations are missing from {package}; install the software again")


def _scripts() -> ScriptDirectory:
    return ScriptDirectory(str(_folder()))


def _connect(url: str) -> Connection:
    engine = create_engine(make_url(url).set(drivername="postgresql+psycopg"), poolclass=NullPool)
    try:
        return engine.connect()
    except OperationalError as error:
        raise Misconfigured(f"cannot reach the database: {_line(error)}") from error
