"""Logs: a constant event and keys, JSON unless a person watches; ids bound once at the edge."""

from __future__ import annotations

import logging
import sys
from typing import Any

import structlog


def configure_logs(*, json: bool | None = None, level: str = "INFO") -> None:
    """Send structlog's and the libraries' records to standard error."""
    as_json = not sys.stderr.isatty() if json is None else json
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    renderer: Any = structlog.processors.JSONRenderer() if as_json else structlog.dev.ConsoleRenderer()
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
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
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
