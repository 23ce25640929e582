"""Requests to a service of OpenStack."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import chain
from typing import Any, ClassVar, Final, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from orchestrator.clients.openstack.errors import ReportedBy, error_of
from orchestrator.clients.openstack.session.shared_lists import LAG_TIMES, SharedList, SharedLists, Unlisted
from orchestrator.clients.openstack.transport import Answer, Content, Query, Request, Transport
from orchestrator.clients.provider_calls import ProviderCalls
from orchestrator.errors import ProviderNotFound, ProviderUnreachable
from orchestrator.json_types import JsonMapping, JsonObject

PAGE: Final = 500  # objects of a page; services with a lower limit return fewer
OBSERVED_PAGE: Final = 1_000  # of lists of the continuous observation
MAX_PAGES: Final = 2_000
OCTETS: Final = "application/octet-stream"
IMAGE_PATCH: Final = "application/openstack-images-v2.1-json-patch"  # glance accepts no other PATCH

Headers = Mapping[str, str]


class _ListTarget(NamedTuple):
    path: str
    key: str
    query: Query
    microversion: str | None


class ListLag(NamedTuple):
    """How old a shared list may be for an observation."""

    seconds: float = 0.0
    deleting: bool = False  # the observed objects: an absence is final
    max_seconds: float = 0.0  # of a service whose lists take long

    def of(self, listing: SharedList) -> float:
        """Return the greatest age of this list."""
        return max(self.seconds, min(self.max_seconds, LAG_TIMES * listing.seconds))


class ServiceApi:
    """A service, called as a credential. Every request ends within `deadline_seconds`.

    Paths are relative to the endpoint of the major version: `/servers`. Each method raises the errors of
    `errors.py`. `microversion` holds for one request; default: the service class's. `headers` are
    sent in addition to the layer's.
    """

    service: ClassVar[str]  # as Heat names it, and in the faults: nova
    service_type: ClassVar[str]  # as the catalog names it: compute
    microversion: ClassVar[str | None] = None  # of every request
    # The microversion from which on lists contain all objects, "": all lists do. None: lists are not shared.
    complete_lists: ClassVar[str | None] = None
    root: ClassVar[str] = ""  # of all paths: /lbaas
    project_filter: ClassVar[str] = ""  # key of a query that restricts lists to a project, if necessary

    def __init__(
        self,
        transport: Transport,
        deadline_seconds: float,
        owner: str = "",
        lag: ListLag | None = None,
        listed: Mapping[str, Any] | None = None,
        calls: ProviderCalls | None = None,
    ) -> None:
        """Send no request yet. `owner` is the tree of stacks that the requests are for; `lag` the age of a
        shared list that may answer an observation. `listed` are objects that answer observations in place of
        requests; others are then requested one by one, after all other requests. `calls` are those of the
        verb.
        """
        self._transport, self._seconds = transport, deadline_seconds
        self._owner, self._lag, self._listed = owner, lag or ListLag(), listed
        self._calls = calls or ProviderCalls()

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
        listing: str = "",
        list_key: str = "",
        query: Query | None = None,
        microversion: str | None = None,
        young: bool = False,
    ) -> JsonObject | None:
        """Return an object for an observation, None if it does not exist: `observed("/servers", "server", id,
        listing="/servers/detail")`.

        The answer may be a part of a list that several observers share: `listing` is its path, by default
        `path`, `list_key` its name in the answer, by default the last part of `path`, and `query` restricts
        it. The objects of the list must have the same fields as a single object. `young`: a list that is too
        old to contain the object is not read again for it.

        Raises:
            NotListedYet: the object is young and not in a recent list.
        """
        if self._listed is not None and id_ in self._listed:
            found: JsonObject = self._listed[id_]
            return found
        shared = None if self._listed is not None else self._shared(path)
        if shared is not None:
            list_key = list_key or path.rpartition("/")[2]
            target = _ListTarget(listing or path, list_key, {**self._scope(), **(query or {})}, microversion)
            with suppress(Unlisted):
                listed = self._read_list(shared, target, id_, young=young)
                if listed is not None or self._is_unlisted(shared, path, list_key, id_):
                    return listed
        answer = self.find_one(f"{path}/{id_}", microversion=microversion)
        return None if answer is None else answer.get(key)

    def all_observed(
        self, path: str, key: str, *, microversion: str | None = None
    ) -> Iterator[tuple[str, JsonObject]]:
        """Yield the objects of a list of the project by id, for a round of the observation: each has the
        fields of a single object.
        """
        if self.project_filter:
            self._transport.owner(self._seconds)  # from then on the project is known
        found = self.listed(path, key, self._scope(), microversion=microversion, page=OBSERVED_PAGE)
        return ((str(item["id"]), item) for item in found if "id" in item)

    def _shared(self, path: str) -> SharedLists | None:
        """Return the shared lists, None for nested collections and without complete lists."""
        lists = getattr(self._transport, "lists", None)
        usable = self.complete_lists is not None and path.count("/") == 1
        return lists if usable and isinstance(lists, SharedLists) else None

    def _scope(self) -> Query:
        """Return the query that restricts a list to the project: administrators see other projects."""
        project_id = getattr(self._transport, "project_id", "")
        return {self.project_filter: project_id} if self.project_filter and project_id else {}

    def _read_list(
        self,
        shared: SharedLists,
        target: _ListTarget,
        id_: str,
        *,
        now: bool = False,
        young: bool = False,
    ) -> JsonObject | None:
        """Return an object of a shared list; `now`: it is missing in another list that contained it.

        Raises:
            NotListedYet: a young object is newer than the list.
            Unlisted: the object needs its own request.
        """
        asked = self._calls.asked_at
        listing = shared.of(self.service, target.path, str(target.query), target.microversion or "")
        since = max(asked - self._lag.of(listing), shared.changed_at(id_))
        if now and not self._lag.deleting:
            since = asked
        until = time.monotonic() + self._seconds

        def fetch() -> Iterator[Sequence[JsonObject]]:
            with self._calls.list_request():
                for page in self._pages(target, PAGE):
                    if time.monotonic() > until:
                        raise ProviderUnreachable(f"{self.service} lists its objects too slowly")
                    yield page

        return listing.read(
            id_,
            since,
            fetch,
            self._seconds,
            asked_at=self._calls.asked_at,
            objects=self._calls.objects,
            was_listed=now,
            deleting=self._lag.deleting,
            young=young,
        )

    def _is_unlisted(self, shared: SharedLists, path: str, list_key: str, id_: str) -> bool:
        """Whether an object that is missing in a list does not exist: nova omits servers of cells that do not
        answer, except in lists of newer microversions.
        """
        if not self.complete_lists:
            return True
        if not self.supports(self.complete_lists):
            return False
        target = _ListTarget(path, list_key, {}, self.complete_lists)
        return self._read_list(shared, target, id_, now=True) is None

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
        """Yield the objects of a list; `key` is the name of the list in the answer. `page` is the size of a
        page; None: the list knows no limit.
        """
        target = _ListTarget(path, key, query or {}, microversion)
        return chain.from_iterable(self._pages(target, page))

    def _pages(self, target: _ListTarget, size: int | None) -> Iterator[Sequence[JsonObject]]:
        values = {**({} if size is None else {"limit": size}), **target.query}
        seen: set[str] = set()
        for _ in range(MAX_PAGES):
            answer = self.get(target.path, values, microversion=target.microversion)
            yield answer.get(target.key) or ()
            following = _next_page(answer, target.key)
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
        """Send a request; return the answer with status and headers. Statuses in `accepted` are no error.

        Raises:
            NeedsOwnRequest: only shared lists may be requested.
        """
        self._calls.note_request(self.service)
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
            root=self.root,
            owner=self._owner,
            background=self._listed is not None,
            reservation=self._calls.reservation,
        )
        with ReportedBy(self.service):
            try:
                answer = self._transport.send(request, self._seconds)
            finally:
                lists = getattr(self._transport, "lists", None)
                if request.changes and isinstance(lists, SharedLists):
                    lists.note_change(path)
            self._calls.note_answer(answer.status)
            if answer.status >= 400 and answer.status not in accepted:
                raise error_of(self.service, answer.status, answer.headers, answer.json())
        return answer

    def supports(self, microversion: str) -> bool:
        """Whether the service offers a microversion."""
        with ReportedBy(self.service):
            lowest, highest = self._transport.versions(self.service, self.service_type, self._seconds)
        return bool(highest) and _number(lowest) <= _number(microversion) <= _number(highest)

    def newest(self, *microversions: str) -> str | None:
        """Return the first of these microversions that the service offers, None if it offers none of them."""
        return next((version for version in microversions if self.supports(version)), None)


def _object(answer: Answer) -> JsonObject:
    value = answer.json()
    return value if isinstance(value, dict) else {}


@lru_cache(maxsize=256)  # there are few: of requests, and the limits of services
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
