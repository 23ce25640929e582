"""The schema version of a database, and the version that this code needs.

Every process checks it at start, so this reads only the names of the migrations and does not load the code
that applies them (`migrate.py`).
"""

from __future__ import annotations

from pathlib import Path

import psycopg

from orchestrator.errors import Misconfigured
from orchestrator.store.connections.outages import OUTAGES
from orchestrator.store.connections.sessions import open_session

VERSION = "SELECT version_num FROM alembic_version"


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
    except OUTAGES as error:
        raise unreachable(error) from error
    return None if row is None else str(row[0])


def require_current(url: str) -> None:
    """Check that the schema has the version that this code needs; called by the API and the workers at start.

    Raises:
        Misconfigured: the schema is older or newer, or the database is unreachable.
    """
    version_, needed = current(url), head()
    if version_ == needed:
        return
    if version_ is not None and version_ not in versions():
        raise newer(version_)
    has = f"schema {version_}" if version_ else "no schema"
    raise Misconfigured(f"the database has {has} and this version needs {needed}: run `orchestrator migrate`")


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


def newer(version: str) -> Misconfigured:
    """Return the message about a schema version that this code does not know."""
    return Misconfigured(
        f"the database has schema {version}, newer than the {head()} this version knows: upgrade the software"
    )


def unreachable(error: BaseException | None) -> Misconfigured:
    """Return the message about an unreachable database, with the driver's error on a single line."""
    return Misconfigured(f"cannot reach the database: {in_one_line(error)}")


def in_one_line(error: BaseException | None) -> str:
    """Return the driver's error on a single line."""
    return " ".join(str(error).split())
