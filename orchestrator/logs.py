"""Logs: a constant event and keys, as JSON unless standard error is a terminal.

The API binds the id of the request. A check sets a log context (`set_log_context`), which is evaluated only
when a line is written: stack, resource, node, traversal, project, and the request that started the
traversal. A search for a request id therefore finds the lines of an update in all processes.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping, MutableMapping
from contextvars import ContextVar
from typing import Any

import orjson
import structlog

from orchestrator import config

LogContext = Callable[[], Mapping[str, object]]

_context: ContextVar[LogContext | None] = ContextVar("log_context", default=None)


def set_log_context(context: LogContext | None) -> None:
    """Add keys to the log lines of this thread; `context` is called when a line is written."""
    _context.set(context)


def bind_request(id_: str | None) -> None:
    """Add a request id to the log lines of this thread and to the traversals that it starts."""
    if id_ is not None:
        structlog.contextvars.bind_contextvars(request_id=id_)


def request_id() -> str | None:
    """Return the id of the request that this thread handles; None outside of a request."""
    id_: str | None = structlog.contextvars.get_contextvars().get("request_id")
    return id_


def _add_context(_logger: object, _name: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    context = _context.get()
    if context is not None:
        for key, value in context().items():
            if value is not None:
                line.setdefault(key, value)
    return line


def _text(line: Mapping[str, object], **_: object) -> str:
    return orjson.dumps(line, default=str, option=orjson.OPT_NON_STR_KEYS).decode()


def configure_logs(*, json: bool | None = None, level: str | None = None) -> None:
    """Write the records of structlog and of the libraries to standard error, from the configured level up.

    Settings under a former name are logged once.
    """
    level = level or config.settings().log_level
    as_json = not sys.stderr.isatty() if json is None else json
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        _add_context,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    renderer: Any = structlog.processors.JSONRenderer(_text) if as_json else structlog.dev.ConsoleRenderer()
    structlog.configure(
        processors=[*shared, structlog.processors.format_exc_info, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level]),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                renderer,
            ],
        )
    )
    logging.captureWarnings(True)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    # These write a line or two per task, call or connection.
    for noisy in ("celery.worker.strategy", "celery.app.trace", "alembic", "httpx"):
        logging.getLogger(noisy).setLevel(logging.WARNING)


def logger(**bound: object) -> structlog.stdlib.BoundLogger:
    """Return a logger with `bound` keys."""
    return structlog.get_logger(**bound)  # type: ignore[no-any-return]
