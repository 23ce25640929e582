"""The files of a request by URL. A request that waits for a server returns its turn."""

from __future__ import annotations

from collections.abc import Collection

from orchestrator.clients import url_fetcher
from orchestrator.clients.url_fetcher import REMOTE
from orchestrator.config import Settings
from orchestrator.operations.runtime import turns


class PausingFetcher:
    """Fetches the texts of a request."""

    def __init__(self, settings: Settings) -> None:
        """The time limit starts with the first text."""
        self._fetch = url_fetcher.fetcher(settings)

    def __call__(self, url: str, schemes: Collection[str] = REMOTE) -> str:
        """Return the text at a URL; see `url_fetcher.Fetcher`."""
        with turns.paused():
            return self._fetch(url, schemes)
