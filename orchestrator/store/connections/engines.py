"""SQLAlchemy engines: the driver opens their sessions.

libpq parses the URL, as for every other connection. SQLAlchemy does not know all of its forms, such as
`postgresql://user@host1:5432,host2:5432/database?target_session_attrs=read-write`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine import ExceptionContext

from orchestrator.store.connections.outages import OUTAGES, Session

DIALECT = "postgresql+psycopg://"


def new_engine(connect: Callable[[], Session], **options: Any) -> Engine:
    """Return an engine whose sessions are opened by `connect`. It raises the driver's errors about the state
    of the server unwrapped.
    """
    engine = create_engine(DIALECT, **options)
    event.listen(engine, "do_connect", lambda *_arguments: connect())
    event.listen(engine, "handle_error", _unwrapped)
    return engine


def _unwrapped(context: ExceptionContext) -> BaseException | None:
    error = context.original_exception
    return error if isinstance(error, OUTAGES) else None
