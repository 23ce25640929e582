"""Requests to a service of OpenStack."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, ClassVar, Final
from urllib.parse import parse_qsl, urlsplit

from orchestrator.clients.openstack.errors import error_of, translated_failures
from orchestrator.errors import ProviderNotFound
from orchestrator.json_types import JsonMapping, JsonObject

PAGE: Final = 500  # objects of a page; services with a lower limit return fewer
MAX_PAGES: Final = 2_000

Query = Mapping[str, Any]


class ServiceApi:
    """A service, called as a credential. Every request ends within `deadline_seconds`.

    Paths are relative to the endpoint of the major version that openstacksdk discovers: `/servers`. Each
    method raises the errors of `errors.py`.
    """

    service: ClassVar[str]  # as Heat names it, and in the faults: nova
    proxy_name: ClassVar[str]  # attribute of openstacksdk's connection: compute
    microversion: ClassVar[str | None] = None  # of every request

    def __init__(self, connection: Any, deadline_seconds: float) -> None:
        """`connection` is openstacksdk's. Sends no request."""
        self._connection, self._seconds = connection, deadline_seconds

    def get(self, path: str, query: Query | None = None, *, microversion: str | None = None) -> JsonObject:
        """Return an object."""
        return self.request("GET", path, query=query, microversion=microversion)

    def find_one(self, path: str, query: Query | None = None) -> JsonObject | None:
        """Return an object, None if the service answers 404."""
        try:
            return self.get(path, query)
        except ProviderNotFound:
            return None

    def post(
        self, path: str, body: JsonMapping | None = None, *, microversion: str | None = None
    ) -> JsonObject:
        """Send a request that creates or acts; return its answer."""
        return self.request("POST", path, body, microversion=microversion)

    def put(
        self, path: str, body: JsonMapping | None = None, *, microversion: str | None = None
    ) -> JsonObject:
        """Change or replace an object."""
        return self.request("PUT", path, body, microversion=microversion)

    def patch(
        self, path: str, body: JsonMapping | None = None, *, microversion: str | None = None
    ) -> JsonObject:
        """Change an object."""
        return self.request("PATCH", path, body, microversion=microversion)

    def delete(self, path: str, query: Query | None = None) -> bool:
        """Request a deletion. Return whether the object existed."""
        try:
            self.request("DELETE", path, query=query)
        except ProviderNotFound:
            return False
        return True

    def listed(self, path: str, key: str, query: Query | None = None) -> Iterator[JsonObject]:
        """Yield the objects of a list, page by page; `key` is the name of the list in the answer."""
        values = {"limit": PAGE, **(query or {})}
        seen: set[str] = set()
        for _ in range(MAX_PAGES):
            page = self.get(path, values)
            yield from page.get(key) or ()
            following = _next_page(page, key)
            if following is None or following in seen:
                return
            seen.add(following)
            values = {**values, **dict(parse_qsl(urlsplit(following).query))}

    def request(
        self,
        method: str,
        path: str,
        body: JsonMapping | None = None,
        *,
        query: Query | None = None,
        microversion: str | None = None,
        headers: Mapping[str, str] | None = None,
        accepted: Collection[int] = (),
    ) -> JsonObject:
        """Send a request; return the JSON of the answer, {} without one. Statuses in `accepted` are no
        error.
        """
        with translated_failures(self.service):
            proxy = getattr(self._connection, self.proxy_name)
            response = proxy.request(
                path,
                method,
                json=body,
                params=dict(query) if query else None,
                headers=dict(headers or {}),
                microversion=microversion or self.microversion,
                timeout=self._seconds,
                raise_exc=False,
            )
            answer = _json(response)
        if response.status_code >= 400 and response.status_code not in accepted:
            raise error_of(self.service, response.status_code, response.headers, answer)
        return answer if isinstance(answer, dict) else {}


def _json(response: Any) -> Any:
    """Return the JSON of an answer, or its text."""
    if not response.content:
        return {}
    try:
        return response.json()
    except ValueError:
        return response.text


def _next_page(page: JsonMapping, key: str) -> str | None:
    """Return the link to the next page: nova, neutron and cinder list it under `<key>_links`, glance and
    keystone elsewhere.
    """
    links = page.get(f"{key}_links")
    if links:
        return next((link["href"] for link in links if link.get("rel") == "next"), None)
    nested = page.get("links")
    following = nested.get("next") if isinstance(nested, dict) else page.get("next")
    return following or None
