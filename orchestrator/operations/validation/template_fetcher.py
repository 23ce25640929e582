"""What of the texts that a request names by their addresses the API fetches, and how much of that."""

from __future__ import annotations

from orchestrator.clients.url_fetcher import Fetched, Fetcher
from orchestrator.config import Settings


def fetcher(settings: Settings) -> Fetcher:
    """Return what fetches the texts of one request."""
    return Fetcher(
        Fetched(
            max_bytes=min(settings.max_fetched_size, settings.max_template_size),
            seconds=settings.template_fetch_timeout,
            private=settings.template_fetch_private,
        )
    )
