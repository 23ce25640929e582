"""Limits for files that the API fetches from URLs in a request."""

from __future__ import annotations

from orchestrator.clients.url_fetcher import Fetched, Fetcher
from orchestrator.config import Settings


def fetcher(settings: Settings) -> Fetcher:
    """Return a fetcher for the files of a request."""
    return Fetcher(
        Fetched(
            max_bytes=min(settings.max_fetched_size, settings.max_template_size),
            seconds=settings.template_fetch_timeout,
            private=settings.template_fetch_allow_private,
        )
    )
