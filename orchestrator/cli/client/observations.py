"""Requests about the verdicts of the continuous observation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

from orchestrator.cli.client.connection import Connection, StackId
from orchestrator.json_types import JsonObject

MAX_PAGES = 10_000


class Observations:
    """Verdicts on the resources of the project."""

    def __init__(self, connection: Connection) -> None:
        """Use `connection`."""
        self._connection = connection

    def deviations(self, stack: StackId | None, verdicts: tuple[str, ...] = ()) -> JsonObject:
        """Return all resources that are not in step, of a stack or of the project, with the observed
        services.
        """
        pages = list(self._pages("observations" if stack is None else f"{stack.path}/observations", verdicts))
        rows = [row for page in pages for row in page["observations"]]
        return {**pages[0], "observations": rows}

    def _pages(self, path: str, verdicts: tuple[str, ...]) -> Iterator[JsonObject]:
        query: dict[str, Any] = {"limit": 1_000}
        if verdicts:
            query["verdict"] = list(verdicts)
        for _ in range(MAX_PAGES):
            page = self._connection.request("GET", path, query)
            links = page.pop("links", None) or []
            yield page
            if not links:
                return
            query["marker"] = parse_qs(urlsplit(links[0]["href"]).query)["marker"]
