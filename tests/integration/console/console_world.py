"""A browser without scripts for the tests of the console."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from tests.integration.api_world import Client

NAVIGATION = {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}


class Links(HTMLParser):
    """The links and forms of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.actions: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag == "a":
            self.links.append(values.get("href") or "")
        if tag == "form":
            self.actions.append(values.get("action") or "")


class Browser:
    """Requests as a browser sends them for pages of the console."""

    def __init__(self, client: Client) -> None:
        self.http: FlaskClient = client.http

    def open(self, path: str, status: int = 200, **options: Any) -> TestResponse:
        """Follow a link."""
        headers = {**NAVIGATION, **options.pop("headers", {})}
        response = self.http.get(path, headers=headers, **options)
        assert response.status_code == status, (
            path,
            response.status,
            response.get_data(as_text=True)[-2000:],
        )
        return response

    def text(self, path: str, status: int = 200, **options: Any) -> str:
        """Return the page as text."""
        return self.open(path, status, **options).get_data(as_text=True)

    def submit(self, path: str, values: dict[str, str], status: int = 303, **options: Any) -> TestResponse:
        """Send a form of a page."""
        headers = {**NAVIGATION, "Origin": "http://localhost", **options.pop("headers", {})}
        response = self.http.post(path, data=values, headers=headers, **options)
        assert response.status_code == status, (
            path,
            response.status,
            response.get_data(as_text=True)[-2000:],
        )
        return response


def links(page: str) -> list[str]:
    """Return the addresses of the links of a page."""
    parser = Links()
    parser.feed(page)
    return parser.links


def words(page: str) -> str:
    """Return the text of a page without its elements."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page))
