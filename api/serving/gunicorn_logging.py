"""How gunicorn logs: like everything else, a line of JSON each (`--logger-class
api.serving.gunicorn_logging.Logs`).

It writes no access log of its own: `access_log.py` knows more of a request.
"""

from __future__ import annotations

from typing import Any

from gunicorn.glogging import Logger

from orchestrator import logs


class Logs(Logger):  # type: ignore[misc]  # gunicorn has no types
    """Hands gunicorn's records to the root logger, which has our format."""

    def setup(self, cfg: Any) -> None:
        """Take gunicorn's own handlers away."""
        super().setup(cfg)
        logs.configure_logs()
        for log in (self.error_log, self.access_log):
            log.handlers.clear()
            log.propagate = True
