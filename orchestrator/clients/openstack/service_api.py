"""Requests to a service of OpenStack."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, ClassVar, Final
from urllib.parse import parse_qsl, urlsplit

from orchestrator.clients.openstack.errors import error_of
from orchestrator.clients.openstack.transport import Answer, Content, Query, Request, Transport
from orchestrator.errors import ProviderNotFound
from orchestrator.json_types import JsonMapping, JsonObject

PAGE: Final = 500  # objects of a page; services with a lower limit return fewer
MAX_PAGES: Final = 2_000
OCTETS: Final = "application/octet-stream"
IMAGE_PATCH: Final = "application/openstack-images-v2.1-json-patch"  # glance accepts no other PATCH

Headers = Mapping[str, str]


class ServiceApi:
    """A service, called as a credential. Every request ends within `deadline_seconds`.

    Paths are relative to the endpoint of the major version: `/servers`. Each method raises the errors of
    `errors.py`. `microversion` is that of one request, by default that of the service's class. `headers` are
    sent in addition to those of the layer.
    """

    service: ClassVar[str]  # as Heat names it, and in the faults: nova
    service_type: ClassVar[str]  # as the catalog names it: compute
    microversion: ClassVar[str | None] = None  # of every request

    def __init__(self, transport: Transport, deadline_seconds: float, owner: str = "") -> None:
        """Send no request yet; `owner` is the stack that the requests are for."""
        self._transport, self._seconds, self._owner = transport, deadline_seconds, owner

    def get(
        self,
        path: str,
        query: Query | None = None,
        *,
        microversion: str | None = None,
        headers: Headers | None = None,
    ) -> JsonObject:
        """Return an object."""
        return self.request("GET", path, query=query, microversion=microversion, headers=headers)

    def find_one(
        self, path: str, query: Query | None = None, *, microversion: str | None = None
    ) -> JsonObject | None:
        """Return an object, None if the service answers 404."""
        try:
            return self.get(path, query, microversion=microversion)
        except ProviderNotFound:
            return None

    def observed(
        self,
        path: str,
        key: str,
        id_: str,
        *,
        listing: str = "",  # noqa: ARG002
        list_key: str = "",  # noqa: ARG002
        query: Query | None = None,  # noqa: ARG002
        microversion: str | None = None,
    ) -> JsonObject | None:
        """Return an object for an observation, None if it does not exist: `observed("/servers", "server", id,
        listing="/servers/detail")`.

        The answer may be a part of a list that several observers share: `listing` is its path, by default
        `path`, `list_key` its name in the answer, by default the last part of `path`, and `query` restricts
        it. The objects of the list must have the same fields as a single object.
        """
        answer = self.find_one(f"{path}/{id_}", microversion=microversion)
        return None if answer is None else answer.get(key)

    def post(
        self,
        path: str,
        body: JsonMapping | None = None,
        *,
        microversion: str | None = None,
        headers: Headers | None = None,
    ) -> JsonObject:
        """Send a request that creates or acts; return its answer."""
        return self.request("POST", path, body, microversion=microversion, headers=headers)

    def put(
        self,
        path: str,
        body: JsonMapping | None = None,
        *,
        microversion: str | None = None,
        headers: Headers | None = None,
    ) -> JsonObject:
        """Change or replace an object."""
        return self.request("PUT", path, body, microversion=microversion, headers=headers)

    def patch(
        self, path: str, body: Any = None, *, microversion: str | None = None, headers: Headers | None = None
    ) -> JsonObject:
        """Change an object. A body for glance is a list of operations, sent as IMAGE_PATCH."""
        if isinstance(body, list | tuple):
            headers = {"Content-Type": IMAGE_PATCH, **(headers or {})}
        return self.request("PATCH", path, body, microversion=microversion, headers=headers)

    def delete(
        self,
        path: str,
        query: Query | None = None,
        *,
        body: JsonMapping | None = None,
        microversion: str | None = None,
    ) -> bool:
        """Request a deletion. Return whether the object existed."""
        try:
            self.request("DELETE", path, body, query=query, microversion=microversion)
        except ProviderNotFound:
            return False
        return True

    def listed(
        self,
        path: str,
        key: str,
        query: Query | None = None,
        *,
        microversion: str | None = None,
        page: int | None = PAGE,
    ) -> Iterator[JsonObject]:
        """Yield the objects of a list, page by page; `key` is the name of the list in the answer. `page` is
        the size of a page; None: the list knows no limit.
        """
        values = {**({} if page is None else {"limit": page}), **(query or {})}
        seen: set[str] = set()
        for _ in range(MAX_PAGES):
            answer = self.get(path, values, microversion=microversion)
            yield from answer.get(key) or ()
            following = _next_page(answer, key)
            if following is None or following in seen:
                return
            seen.add(following)
            values = {**values, **dict(parse_qsl(urlsplit(following).query))}

    def download(self, path: str, query: Query | None = None, *, microversion: str | None = None) -> bytes:
        """Return a body that is no JSON, at most MAX_BYTES of `deadline_adapter.py`."""
        answer = self.exchange(
            "GET", path, query=query, microversion=microversion, headers={"Accept": OCTETS}
        )
        return answer.content

    def upload(
        self, path: str, content: Content, *, method: str = "PUT", content_type: str = OCTETS
    ) -> JsonObject:
        """Send a body that is no JSON."""
        answer = self.exchange(method, path, content=content, headers={"Content-Type": content_type})
        return _object(answer)

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Query | None = None,
        microversion: str | None = None,
        headers: Headers | None = None,
        accepted: Collection[int] = (),
    ) -> JsonObject:
        """Send a request; return the JSON of the answer, {} without one. Statuses in `accepted` are no
        error.
        """
        answer = self.exchange(
            method, path, body, query=query, microversion=microversion, headers=headers, accepted=accepted
        )
        return _object(answer)

    def exchange(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content: Content | None = None,
        query: Query | None = None,
        microversion: str | None = None,
        headers: Headers | None = None,
        accepted: Collection[int] = (),
    ) -> Answer:
        """Send a request; return the answer with status and headers. Statuses in `accepted` are no error."""
        request = Request(
            service=self.service,
            service_type=self.service_type,
            method=method,
            path=path,
            query=query or {},
            body=body,
            content=content,
            headers=headers or {},
            microversion=microversion or self.microversion,
            owner=self._owner,
        )
        answer = self._transport.send(request, self._seconds)
        if answer.status >= 400 and answer.status not in accepted:
            raise error_of(self.service, answer.status, answer.headers, answer.json())
        return answer

    def supports(self, microversion: str) -> bool:
        """Whether the service offers a microversion."""
        lowest, highest = self._transport.versions(self.service, self.service_type, self._seconds)
        return bool(highest) and _number(lowest) <= _number(microversion) <= _number(highest)

    def newest(self, *microversions: str) -> str | None:
        """Return the first of these microversions that the service offers, None if it offers none of them."""
        return next((version for version in microversions if self.supports(version)), None)


def _object(answer: Answer) -> JsonObject:
    value = answer.json()
    return value if isinstance(value, dict) else {}


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


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
