"""What the command line asks about webhooks: who is told of a project's events."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

Query = Mapping[str, str | int | list[str]]


class WebhookCalls(ABC):
    """A client's questions about webhooks."""

    @abstractmethod
    def _ask(self, method: str, path: str, query: Query | None = None, body: object = None) -> Any:
        """Ask the server; return what it answers."""

    def webhooks(self, query: Query) -> list[dict[str, Any]]:
        """Return the project's webhooks."""
        return list(self._ask("GET", "webhooks", query)["webhooks"])

    def make_webhook(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Make a webhook; the answer has its secret."""
        answer: dict[str, Any] = self._ask("POST", "webhooks", body=body)["webhook"]
        return answer

    def webhook(self, id_: str) -> dict[str, Any]:
        """Return one webhook."""
        answer: dict[str, Any] = self._ask("GET", _webhook(id_))["webhook"]
        return answer

    def delete_webhook(self, id_: str) -> None:
        """Remove a webhook."""
        self._ask("DELETE", _webhook(id_))

    def test_webhook(self, id_: str) -> dict[str, Any]:
        """Have a message delivered; return how that went."""
        answer: dict[str, Any] = self._ask("POST", f"{_webhook(id_)}/test")["test"]
        return answer

    def rearm_webhook(self, id_: str, after: str | None) -> dict[str, Any]:
        """Let a webhook try again."""
        body = {"after": after} if after else {}
        answer: dict[str, Any] = self._ask("POST", f"{_webhook(id_)}/rearm", body=body)["webhook"]
        return answer


def _webhook(id_: str) -> str:
    return f"webhooks/{quote(id_, safe='')}"
