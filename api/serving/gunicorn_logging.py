"""Gunicorn's logger: JSON lines like all other logs (`--logger-class api.serving.gunicorn_logging.Logs`).

The access log is written by `access_log.py`, which has more information about a request.
"""

from __future__ import annotations

from gunicorn.glogging import Logger

from orchestrator import logs


class Logs(Logger):  # type: ignore[misc]  # gunicorn has no types
    """Passes gunicorn's records to the root logger, which has our format."""

    def setup(self, cfg: object) -> None:
        """Remove gunicorn's own handlers."""
        super().setup(cfg)
        logs.configure_logs()
        for log in (self.error_log, self.access_log):
            log.handlers.clear()
            log.propagate = True
