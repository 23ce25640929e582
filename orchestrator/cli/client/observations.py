"""Requests about the verdicts of the continuous observation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

from orchestrator.cli.client.connection import Connection, StackId
from orchestrator.json_types import JsonObject

MAX_PAGES = 10_000
MAX_PAGE = 1_000


class Observations:
    """Verdicts on the resources of the project."""

    def __init__(self, connection: Connection) -> None:
        """Use `connection`."""
        self._connection = connection

    def deviations(self, stack: StackId | None, verdicts: tuple[str, ...] = ()) -> JsonObject:
        """Return all resources that are not in sync, of a stack or of the project, with the observed
        services.
        """
        pages = list(self._pages("observations" if stack is None else f"{stack.path}/observations", verdicts))
        rows = [row for page in pages for row in page["observations"]]
        return {**pages[0], "observations": rows}

    def history(self, stack: StackId | None, limit: int, verdicts: tuple[str, ...] = ()) -> list[JsonObject]:
        """Return at most `limit` verdicts that have ended, of a stack with those below it or of the project,
        the latest first.
        """
        place, rows = "" if stack is None else f"{stack.path}/", list[JsonObject]()
        for page in self._pages(f"{place}observations/history", verdicts, min(limit, MAX_PAGE)):
            rows += page["history"]
            if len(rows) >= limit:
                break
        return rows[:limit]

    def _pages(self, path: str, verdicts: tuple[str, ...], size: int = MAX_PAGE) -> Iterator[JsonObject]:
        query: dict[str, Any] = {"limit": size}
        if verdicts:
            query["verdict"] = list(verdicts)
        for _ in range(MAX_PAGES):
            page = self._connection.request("GET", path, query)
            links = page.pop("links", None) or []
            yield page
            if not links:
                return
            query["marker"] = parse_qs(urlsplit(links[0]["href"]).query)["marker"]
