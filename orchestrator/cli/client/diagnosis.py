"""Requests about the progress of a stack, and about the reasons for waiting and failing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from orchestrator.cli.client.connection import Connection, StackId
from orchestrator.json_types import JsonObject

MAX_PAGES = 100  # a page may be empty and still name a next page


class Diagnosis:
    """Progress and failures of the project's stacks."""

    def __init__(self, connection: Connection) -> None:
        """Use `connection`."""
        self._connection = connection

    def progress(self, stack: StackId) -> JsonObject:
        """Return the counts of the current action."""
        answer: JsonObject = self._connection.request("GET", f"{stack.path}/progress")["progress"]
        return answer

    def why(self, stack: StackId, resource: str | None, limit: int) -> tuple[JsonObject, bool]:
        """Return the explanation for a stack or a resource, and whether more than `limit` resources wait."""
        if resource is not None:
            path = f"{stack.path}/resources/{quote(resource, safe='')}/why"
            found: JsonObject = self._connection.request("GET", path)["why"]
            return found, False
        explanation, waiting = dict[str, Any](), list[JsonObject]()
        query: dict[str, str | int | list[str]] = {}
        for _ in range(MAX_PAGES):
            remaining = limit - len(waiting)
            answer = self._connection.request("GET", f"{stack.path}/why", {**query, "limit": remaining})
            explanation = explanation or answer["why"]
            waiting += answer["why"]["waiting"]
            links = answer.get("links") or []
            if not links or len(waiting) >= limit:
                return {**explanation, "waiting": waiting}, bool(links)
            query["marker"] = parse_qs(urlsplit(links[0]["href"]).query)["marker"]
        return {**explanation, "waiting": waiting}, True

    def failures(
        self, stack: StackId, revision: int | None = None, limit: int | None = None
    ) -> Iterator[JsonObject]:
        """Yield every cause of the failure of a stack, or of a revision."""
        query: dict[str, str | int | list[str]] = {} if revision is None else {"revision": revision}
        yield from self._connection.pages(f"{stack.path}/failures", "failures", query, limit)

    def failure_tree(self, stack: StackId, revision: int | None, depth: int) -> JsonObject:
        """Return the causes of a failure, with the causes in nested stacks below them."""
        query: dict[str, str | int | list[str]] = {"nested_depth": depth}
        if revision is not None:
            query["revision"] = revision
        answer: JsonObject = self._connection.request("GET", f"{stack.path}/failures", query)
        return answer

    def timeline(self, stack: StackId, revision: int | None, limit: int) -> JsonObject:
        """Return the operations of the last action, or of a revision's, with at most `limit` bars."""
        query: dict[str, str | int | list[str]] = {"limit": limit}
        if revision is not None:
            query["revision"] = revision
        answer: JsonObject = self._connection.request("GET", f"{stack.path}/timeline", query)["timeline"]
        return answer
