"""The schema version of a database, and the version that this code needs.

Every process checks it at start, so this reads only the names of the migrations and does not load the code
that applies them (`migrate.py`).
"""

from __future__ import annotations

import time
from pathlib import Path

import psycopg

from orchestrator.errors import Misconfigured
from orchestrator.logs import logger
from orchestrator.store.connections.outages import OUTAGES
from orchestrator.store.connections.sessions import open_session

VERSION = "SELECT version_num FROM alembic_version"
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 15.0  # seconds between two attempts to reach the database


def head() -> str:
    """Return the version that this code needs."""
    return versions()[-1]


def current(url: str) -> str | None:
    """Return the version of the schema at `url`, None if there is none.

    Raises:
        Misconfigured: the database is unreachable, or behind an unsuitable connection pooler.
    """
    try:
        with open_session(lambda: psycopg.connect(url)) as db:
            row = db.execute(VERSION).fetchone()
    except psycopg.errors.UndefinedTable:
        return None
    except psycopg.ProgrammingError as error:
        if error.sqlstate is not None:  # an answer of the server
            raise
        # The text of the error can contain the password.
        raise Misconfigured("ORCHESTRATOR_DATABASE_URL is not a valid URL of PostgreSQL") from error
    except OUTAGES as error:
        raise unreachable(error) from error
    return None if row is None else str(row[0])


def require_current(url: str) -> None:
    """Check that the schema has the version that this code needs.

    Raises:
        Misconfigured: the schema is older or newer, or the database is unreachable.
    """
    version_, needed = current(url), head()
    if version_ == needed:
        return
    if version_ is not None:
        require_known(version_)
    has = f"schema {version_}" if version_ else "no schema"
    raise Misconfigured(f"the database has {has} and this version needs {needed}: run `orchestrator migrate`")


def wait_for_current(url: str) -> None:
    """Check the schema as `require_current` does; wait while the database is unreachable.

    Raises:
        Misconfigured: the schema is older or newer, or the URL is not valid.
    """
    pause = FIRST_PAUSE
    while True:
        try:
            return require_current(url)
        except DatabaseUnreachable as error:
            logger().warning("database_unreachable", error=str(error), next_try_seconds=pause)
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)


def versions() -> list[str]:
    """Return all versions, oldest first: the numbers at the start of the migrations' file names."""
    return sorted(file.name.partition("_")[0] for file in (folder() / "versions").glob("[0-9]*_*.py"))


def folder() -> Path:
    """Return the folder of the migrations, in the wheel or in the source tree."""
    package = Path(__file__).resolve().parents[2]
    for place in (package / "migrations", package.parent / "alembic"):
        if (place / "env.py").is_file():
            return place
    raise Misconfigured(f"the migrations are missing from {package}; install the software again")


def require_known(version: str) -> None:
    """Check that this code can upgrade a database from this schema version.

    Raises:
        Misconfigured: the schema is newer than this code, or older than its first migration.
    """
    known = versions()
    if version in known:
        return
    if version < known[0]:
        raise Misconfigured(
            f"the database has schema {version}, older than {known[0]}: install the development version 0.1.0"
            f" with schema {known[0]}, run its `orchestrator migrate`, and then upgrade to this version"
        )
    raise Misconfigured(
        f"the database has schema {version}, newer than the {known[-1]} this version knows:"
        " upgrade the software"
    )


class DatabaseUnreachable(Misconfigured):
    """The database does not answer, or refuses this client; it may be started or changed later."""


def unreachable(error: BaseException | None) -> DatabaseUnreachable:
    """Return the message about an unreachable database, with the driver's error on a single line."""
    return DatabaseUnreachable(f"cannot reach the database: {in_one_line(error)}")


def in_one_line(error: BaseException | None) -> str:
    """Return the driver's error on a single line."""
    return " ".join(str(error).split())
