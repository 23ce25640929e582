"""Long answers: rows read from a cursor in slices, so that memory does not grow with them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from sqlalchemy import Row, Select

from orchestrator.store.database import Database

SLICE: Final = 1_000  # rows


def streamed(database: Database, statement: Select[Any]) -> Iterator[Row[Any]]:
    """Yield a statement's rows; the connection is let go of at the end, or when the iterator is closed."""
    options = {"stream_results": True, "yield_per": SLICE}
    with (
        database.engine.connect() as connection,
        connection.execute(statement, execution_options=options) as rows,
    ):
        yield from rows
