"""Large results, fetched from a cursor in slices so that memory stays bounded; and small results from large
tables, reached by index only.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from sqlalchemy import Connection, Row, Select, text

from orchestrator.store.connections.database import HOT_SETTINGS, Database

FETCH_SIZE: Final = 1_000  # rows
ROWS_WITH_VALUES: Final = 50  # rows with values of resources, each of which may have several MiB

_BY_KEYS: Final = text(
    "SELECT "
    + ", ".join(
        f"set_config('{name}', '{value}', true)"
        for name, value in {
            **HOT_SETTINGS,
            "plan_cache_mode": "force_custom_plan",
            "join_collapse_limit": "1",  # join in the order written
            "from_collapse_limit": "1",
        }.items()
    )
)


def streamed(
    database: Database, statement: Select[Any], limit: int | None = None, *, fetch_size: int = FETCH_SIZE
) -> Iterator[Row[Any]]:
    """Yield the rows of a statement, at most `limit`. The connection is released at the end, or when the
    iterator is closed. A short page is fetched at once: a cursor would cost more than its rows.
    """
    if limit is not None:
        statement = statement.limit(limit)
    if limit is not None and limit <= fetch_size:
        with database.engine.connect() as connection:
            page = connection.execute(statement).all()
        yield from page
        return
    options = {"stream_results": True, "yield_per": fetch_size}
    with (
        database.engine.connect() as connection,
        connection.execute(statement, execution_options=options) as rows,
    ):
        yield from rows


@contextmanager
def by_keys(database: Database) -> Iterator[Connection]:
    """Lend a connection whose statements reach rows by index, independent of the statistics.

    To the planner a table that was filled just now looks empty, and a sequential scan would read the rows of
    all stacks.
    """
    with database.engine.connect() as connection, connection.begin():
        connection.execute(_BY_KEYS)
        yield connection
