"""Logs: a constant event and keys, JSON unless a person watches; ids bound once at the edge.

The API binds the id of the request. A check says what it is about (`concerning`), which costs nothing until a
line is written: stack, resource, node, traversal, project, and the request that the traversal comes from. So
one search for a request id shows an update whole, in whichever processes it ran.
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

Tell = Callable[[], Mapping[str, object]]

_about: ContextVar[Tell | None] = ContextVar("about", default=None)


def concerning(tell: Tell | None) -> None:
    """Let this thread's lines say what they are about; `tell` is asked when one is written."""
    _about.set(tell)


def bind_request(id_: str | None) -> None:
    """Let this thread's lines name a request, and what it begins be that request's."""
    if id_ is not None:
        structlog.contextvars.bind_contextvars(request_id=id_)


def request_id() -> str | None:
    """Return the id of the request that this thread answers, None where it answers none."""
    found: str | None = structlog.contextvars.get_contextvars().get("request_id")
    return found


def _say_about(_logger: Any, _name: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    tell = _about.get()
    if tell is not None:
        for key, value in tell().items():
            if value is not None:
                line.setdefault(key, value)
    return line


def _text(line: Mapping[str, Any], **_: Any) -> str:
    return orjson.dumps(line, default=str, option=orjson.OPT_NON_STR_KEYS).decode()


def configure_logs(*, json: bool | None = None, level: str | None = None) -> None:
    """Send structlog's and the libraries' records to standard error, from the configured level on."""
    level = level or config.settings().log_level
    as_json = not sys.stderr.isatty() if json is None else json
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        _say_about,
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
    for noisy in (
        "celery.worker.strategy",
        "celery.app.trace",
        "alembic",
        "httpx",
    ):  # a line or two per task, call, connection
        logging.getLogger(noisy).setLevel(logging.WARNING)


def logger(**bound: object) -> structlog.stdlib.BoundLogger:
    """Return a logger with `bound` keys."""
    return structlog.get_logger(**bound)  # type: ignore[no-any-return]
