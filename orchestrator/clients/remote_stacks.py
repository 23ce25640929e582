"""Stacks behind the orchestration API of another region, whoever serves it: ours or Heat.

Every call has a deadline for all of it, and goes to the endpoint of the catalog and nowhere else: where the
API leads to a stack's own address, only the name and the id are taken from there.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final, Literal
from urllib.parse import quote, urlsplit

import httpx
import orjson

from orchestrator.clients.region_catalog import Endpoint
from orchestrator.errors import ProviderBusy, ProviderError, ProviderSilent

MOST_BYTES: Final = 64 * 1024 * 1024  # of an answer
MISSING: Final = frozenset({"EntityNotFound", "NotFound", "StackNotFound", "SnapshotNotFound"})
BUSY: Final = frozenset({429, 503})
UNSURE: Final = frozenset({500, 502, 504})  # it may have been done all the same

Json = Mapping[str, Any]
Action = Literal["suspend", "resume", "check"]


class Gone(Exception):
    """There is no such stack, or snapshot, there."""


class RemoteStacks:
    """The stacks of one project in one region. Every method may raise ProviderError and its kinds."""

    def __init__(
        self, endpoint: Endpoint, deadline_seconds: float, *, insecure: bool = False, ca_cert: str = ""
    ) -> None:
        """`insecure` lets anybody answer, `ca_cert` (PEM) is an authority to trust besides."""
        self.endpoint, self.deadline_seconds = endpoint, deadline_seconds
        self._insecure, self._ca_cert = insecure, ca_cert
        self._paths: dict[str, str] = {}  # of stacks, by id

    def validate(self, body: Json) -> None:
        """Have a template looked at."""
        self._call("POST", "/validate", body)

    def create(self, body: Json) -> str:
        """Ask for a stack; return its id."""
        stack = self._call("POST", "/stacks", body)["stack"]
        return str(stack["id"])

    def with_tag(self, tag: str) -> str | None:
        """Return the id of a stack that is there with this tag."""
        found = self._call("GET", f"/stacks?tags={quote(tag, safe='')}")["stacks"]
        return str(found[-1]["id"]) if found else None  # the oldest is last

    def show(self, id_: str) -> Json:
        """Return a stack.

        Raises:
            Gone: there is none.
        """
        shown: Json = self._call("GET", self._path(id_))["stack"]
        return shown

    def update(self, id_: str, body: Json) -> None:
        """Ask for another template, or other parameters.

        Raises:
            Gone: there is none.
        """
        self._call("PUT", self._path(id_), body)

    def delete(self, id_: str) -> None:
        """Ask for a stack's removal.

        Raises:
            Gone: there is none.
        """
        self._call("DELETE", self._path(id_))

    def act(self, id_: str, action: Action) -> None:
        """Ask for an action.

        Raises:
            Gone: there is none.
        """
        self._call("POST", f"{self._path(id_)}/actions", {action: None})

    def snapshot(self, id_: str, name: str) -> str:
        """Ask for a snapshot of that name unless there is one; return its id.

        Raises:
            Gone: there is no such stack.
        """
        known = self._snapshot(id_, name)
        if known is not None:
            return known
        return str(self._call("POST", f"{self._path(id_)}/snapshots", {"name": name})["id"])

    def delete_snapshot(self, id_or_name: str, snapshot: str, *, named: bool = False) -> None:
        """Ask for a snapshot's removal, by its id or, `named`, by its name.

        Raises:
            Gone: there is none.
        """
        found = self._snapshot(id_or_name, snapshot) if named else snapshot
        if found is None:
            raise Gone
        self._call("DELETE", f"{self._path(id_or_name)}/snapshots/{quote(found, safe='')}")

    def _snapshot(self, id_: str, name: str) -> str | None:
        listed = self._call("GET", f"{self._path(id_)}/snapshots")["snapshots"]
        return next((str(one["id"]) for one in listed if one.get("name") == name), None)

    def _path(self, id_: str) -> str:
        """Return the path of a stack's own: its name and its id."""
        known = self._paths.get(id_)
        if known is None:
            there = self._call("GET", f"/stacks/{quote(id_, safe='')}", redirected=True)
            _, _, place = urlsplit(str(there)).path.partition("/stacks/")
            if place.count("/") != 1 or ".." in place:
                raise ProviderError(f"{self.endpoint.region} leads to no stack", "UnexpectedAnswer")
            known = self._paths[id_] = f"/stacks/{place}"
        return known

    def _call(self, method: str, path: str, body: Json | None = None, *, redirected: bool = False) -> Any:
        """Return what was answered, or where it leads.

        Raises:
            Gone, ProviderError: it refused, or nobody answered.
        """
        status, headers, data = self._answer(method, path, body)
        if status == httpx.codes.UNAUTHORIZED and self.endpoint.renew is not None:  # it was revoked, say
            self.endpoint = replace(self.endpoint, token=self.endpoint.renew())
            status, headers, data = self._answer(method, path, body)
        if status in (301, 302, 307, 308) and redirected:
            return headers.get("location", "")
        try:
            answer = orjson.loads(data) if data else None
        except orjson.JSONDecodeError:
            answer = None
        if status < 300:
            return answer
        raise self._refusal(status, answer)

    def _refusal(self, status: int, answer: Any) -> Exception:
        """Return what a refusal means."""
        error = answer.get("error") if isinstance(answer, dict) else None
        error = error if isinstance(error, dict) else {}
        kind, message = str(error.get("type") or ""), str(error.get("message") or f"it answered {status}")
        if status == httpx.codes.NOT_FOUND and kind in MISSING:
            return Gone(message)
        if status in UNSURE:
            return ProviderSilent(f"{self.endpoint.region}: {message}", kind or "ServiceError")
        if status in BUSY or kind == "ActionInProgress":
            return ProviderBusy(f"{self.endpoint.region}: {message}", kind or "ServiceBusy")
        return ProviderError(message, kind or f"HTTP{status}")

    def _answer(self, method: str, path: str, body: Json | None) -> tuple[int, httpx.Headers, bytes]:
        ends_at = time.monotonic() + self.deadline_seconds
        region = self.endpoint.region
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        if self.endpoint.token:
            headers["X-Auth-Token"] = self.endpoint.token
        content = None if body is None else orjson.dumps(body)
        try:
            with (
                self._client() as client,
                client.stream(
                    method, f"{self.endpoint.url}{path}", content=content, headers=headers
                ) as answer,
            ):
                return answer.status_code, answer.headers, self._read(answer, ends_at)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise ProviderBusy(f"region {region} cannot be reached: {error}", "ConnectionError") from error
        except (httpx.TransportError, httpx.DecodingError) as error:  # it was asked, and may still do it
            why = str(error) or type(error).__name__
            raise ProviderSilent(f"region {region} did not answer: {why}", "ConnectionError") from error

    def _read(self, answer: httpx.Response, ends_at: float) -> bytes:
        data = bytearray()
        for chunk in answer.iter_bytes():
            data += chunk
            if len(data) > MOST_BYTES:
                raise ProviderError(
                    f"region {self.endpoint.region} answers with too much", "UnexpectedAnswer"
                )
            if time.monotonic() > ends_at:
                raise ProviderSilent(f"region {self.endpoint.region} did not answer in time", "Timeout")
        return bytes(data)

    @contextmanager
    def _client(self) -> Iterator[httpx.Client]:
        secure = self.endpoint.url.startswith("https:")
        with httpx.Client(
            verify=self._authorities() if secure else False,
            timeout=self.deadline_seconds,
            trust_env=False,
            follow_redirects=False,
        ) as client:
            yield client

    def _authorities(self) -> ssl.SSLContext:
        try:
            context = ssl.create_default_context(cafile=self.endpoint.ca_file)
            if self._ca_cert:
                context.load_verify_locations(cadata=self._ca_cert)
        except (ssl.SSLError, ValueError) as error:
            raise ProviderError(f"the CA certificate cannot be read: {error}", "SSLError") from error
        if self._insecure:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context
