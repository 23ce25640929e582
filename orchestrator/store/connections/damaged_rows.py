"""Rows that cannot be read: a damaged row stops the work on its own resource or stack, and nothing else
(store/adr/0009).

A row is damaged if a value in it has no meaning: NULL where a value is needed, JSON of another shape, or a
sealed value that is no ciphertext. Its reader raises one of `DAMAGED`. The stored template and
environment of an accepted revision are valid, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from psycopg import DataError

from orchestrator.errors import DamagedValue, InvalidTemplate
from orchestrator.logs import logger
from orchestrator.store.connections.database import UNREACHABLE

log = logger()
Row = TypeVar("Row")
T = TypeVar("T")

DAMAGED: Final = (
    TypeError,
    ValueError,
    LookupError,
    AttributeError,
    AssertionError,
    DataError,
    DamagedValue,
    InvalidTemplate,
)
DAMAGED_ROW: Final = "DamagedRow"  # the error type of failures
MAX_DETAIL: Final = 200  # characters


def damage(error: Exception) -> str:
    """Return the text about a damaged row, for the reason of a failure and for the log."""
    detail = " ".join(str(error).split())[:MAX_DETAIL]
    return f"its stored values cannot be read ({type(error).__name__}: {detail})"


def decoded(rows: Iterable[Row], decode: Callable[[Row], T], kind: str) -> Iterator[T]:
    """Yield decoded rows; damaged rows are logged, with their first column, and left out."""
    for row in rows:
        try:
            yield decode(row)
        except DAMAGED as error:
            first: Any = row[0] if isinstance(row, tuple) and row else None
            log.error("row_damaged", kind=kind, id=first, error=damage(error))


@contextmanager
def apart(kind: str, **ids: object) -> Iterator[None]:
    """Carry out the work on one item of several: an error is logged with the ids, and the next items follow.

    Raises:
        UNREACHABLE: the database is away, which concerns all items.
    """
    try:
        yield
    except UNREACHABLE:
        raise
    except DAMAGED as error:
        log.error("row_damaged", kind=kind, **ids, error=damage(error))
    except Exception:
        log.exception("item_failed", kind=kind, **ids)
