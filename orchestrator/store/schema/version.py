"""Which schema a database has, and which one this code needs.

Every process asks before it starts, so this reads the names of the migrations and loads nothing of what
applies them (`migrate.py`).
"""

from __future__ import annotations

from pathlib import Path

import psycopg

from orchestrator.errors import Misconfigured

VERSION = "SELECT version_num FROM alembic_version"


def head() -> str:
    """Return the version this code needs."""
    return versions()[-1]


def current(url: str) -> str | None:
    """Return the version of the schema at `url`, None when there is none.

    Raises:
        Misconfigured: the database cannot be reached.
    """
    try:
        with psycopg.connect(url) as db:
            found = db.execute(VERSION).fetchone()
    except psycopg.errors.UndefinedTable:
        return None
    except psycopg.OperationalError as error:
        raise unreachable(error) from error
    return None if found is None else str(found[0])


def require_current(url: str) -> None:
    """Return when the schema is the one this code needs; the API and the workers ask before they start.

    Raises:
        Misconfigured: the schema is older or newer, or the database cannot be reached.
    """
    found, needed = current(url), head()
    if found == needed:
        return
    if found is not None and found not in versions():
        raise newer(found)
    has = f"schema {found}" if found else "no schema"
    raise Misconfigured(f"the database has {has} and this version needs {needed}: run `orchestrator migrate`")


def versions() -> list[str]:
    """Return the versions there are, oldest first: each is the number its migration's file begins with."""
    return sorted(file.name.partition("_")[0] for file in (folder() / "versions").glob("[0-9]*_*.py"))


def folder() -> Path:
    """Return where the migrations are, in the wheel or in the tree."""
    package = Path(__file__).resolve().parents[2]
    for place in (package / "migrations", package.parent / "alembic"):
        if (place / "env.py").is_file():
            return place
    raise Misconfigured(f"the migrations are missing from {package}; install the software again")


def newer(found: str) -> Misconfigured:
    """Return what to say of a schema that this code does not know."""
    return Misconfigured(
        f"the database has schema {found}, newer than the {head()} this version knows: upgrade the software"
    )


def unreachable(error: BaseException | None) -> Misconfigured:
    """Return what to say of a database that does not answer, in its own words and one line."""
    return Misconfigured(f"cannot reach the database: {in_one_line(error)}")


def in_one_line(error: BaseException | None) -> str:
    """Return the database's own words in one line."""
    return " ".join(str(error).split())
