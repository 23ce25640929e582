"""The collation of the database.

The recommended collation is `C.UTF-8` of PostgreSQL's builtin provider: it sorts by code points, and does not
depend on the operating system. Collations of libc and ICU change with upgrades of the operating system, which
can make indexes on text invalid. They are usable otherwise, so another collation is a warning.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, text

from orchestrator.logs import logger

RECOMMENDED: Final = "builtin C.UTF-8"
COLLATION: Final = text(
    """SELECT CASE datlocprovider WHEN 'b' THEN 'builtin' WHEN 'i' THEN 'icu' ELSE 'libc' END
        || ' ' || coalesce(datlocale, datcollate)
    FROM pg_database WHERE datname = current_database()"""
)
ADVICE: Final = (
    "an upgrade of the operating system can make indexes on text invalid: create the database with"
    " LOCALE_PROVIDER builtin BUILTIN_LOCALE 'C.UTF-8' TEMPLATE template0, and restore a dump into it"
)


def collation(connection: Connection) -> str:
    """Return provider and name of the collation of the database."""
    found: str = connection.execute(COLLATION).scalar_one()
    return found


def warn_of_other(connection: Connection) -> None:
    """Log a warning if the database does not have the recommended collation."""
    found = collation(connection)
    if found != RECOMMENDED:
        logger().warning("collation_not_recommended", collation=found, recommended=RECOMMENDED, advice=ADVICE)
