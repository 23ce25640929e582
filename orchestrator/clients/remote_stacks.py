"""Client of the orchestration API of another region: this project's, or Heat's.

Every call has a total deadline, and only contacts the endpoint of the catalog: of an address that the API
redirects to, only the stack's name and id are used.
"""

from __future__ import annotations

import ssl
from dataclasses import replace
from typing import Any, Final, Literal
from urllib.parse import quote, urlsplit

import httpcore
import httpx
import orjson

from orchestrator.clients.deadline import Deadline, open_response, read_body
from orchestrator.clients.region_catalog import Endpoint
from orchestrator.errors import (
    ProviderBusy,
    ProviderChanging,
    ProviderError,
    ProviderGatewayFailed,
    ProviderSilent,
    ProviderUnreachable,
)
from orchestrator.json_types import JsonMapping

MAX_BYTES: Final = 64 * 1024 * 1024  # of a response
MISSING: Final = frozenset({"EntityNotFound", "NotFound", "StackNotFound", "SnapshotNotFound"})
BUSY: Final = frozenset({429, 503})
# The request may have been carried out all the same.
UNCERTAIN: Final = frozenset({500, 502, 504})

Action = Literal["suspend", "resume", "check"]


class Gone(Exception):
    """The stack or snapshot does not exist."""


class RemoteStacks:
    """The stacks of a project in a region. Every method may raise ProviderError and its subclasses."""

    def __init__(
        self, endpoint: Endpoint, deadline_seconds: float, *, insecure: bool = False, ca_cert: str = ""
    ) -> None:
        """`insecure` skips the verification of certificates; `ca_cert` (PEM) is an additional trusted
        authority.
        """
        self.endpoint, self.deadline_seconds = endpoint, deadline_seconds
        self._insecure, self._ca_cert = insecure, ca_cert
        self._paths: dict[str, str] = {}  # of stacks, by id

    def validate(self, body: JsonMapping) -> None:
        """Validate a template."""
        self._call("POST", "/validate", body)

    def create(self, body: JsonMapping) -> str:
        """Request a new stack; return its id."""
        stack = self._call("POST", "/stacks", body)["stack"]
        return str(stack["id"])

    def with_tag(self, tag: str) -> str | None:
        """Return the id of an existing stack with this tag."""
        stacks = self._call("GET", f"/stacks?tags={quote(tag, safe='')}")["stacks"]
        return str(stacks[-1]["id"]) if stacks else None  # the oldest is last

    def show(self, id_: str) -> JsonMapping:
        """Return a stack.

        Raises:
            Gone: it does not exist.
        """
        shown: JsonMapping = self._call("GET", self._path(id_))["stack"]
        return shown

    def update(self, id_: str, body: JsonMapping) -> None:
        """Request another template, or other parameters.

        Raises:
            Gone: the stack does not exist.
        """
        self._call("PUT", self._path(id_), body)

    def delete(self, id_: str) -> None:
        """Request the delete of a stack.

        Raises:
            Gone: it does not exist.
        """
        self._call("DELETE", self._path(id_))

    def start_action(self, id_: str, action: Action) -> None:
        """Request an action.

        Raises:
            Gone: the stack does not exist.
        """
        self._call("POST", f"{self._path(id_)}/actions", {action: None})

    def snapshot(self, id_: str, name: str) -> str:
        """Request a snapshot of that name unless it exists; return its id.

        Raises:
            Gone: the stack does not exist.
        """
        existing = self._snapshot(id_, name)
        if existing is not None:
            return existing
        return str(self._call("POST", f"{self._path(id_)}/snapshots", {"name": name})["id"])

    def delete_snapshot(self, id_or_name: str, snapshot: str, *, named: bool = False) -> None:
        """Request the delete of a snapshot, by its id or, if `named`, by its name.

        Raises:
            Gone: it does not exist.
        """
        snapshot_id = self._snapshot(id_or_name, snapshot) if named else snapshot
        if snapshot_id is None:
            raise Gone
        self._call("DELETE", f"{self._path(id_or_name)}/snapshots/{quote(snapshot_id, safe='')}")

    def _snapshot(self, id_: str, name: str) -> str | None:
        listed = self._call("GET", f"{self._path(id_)}/snapshots")["snapshots"]
        return next((str(item["id"]) for item in listed if item.get("name") == name), None)

    def _path(self, id_: str) -> str:
        """Return the canonical path of a stack: its name and its id."""
        path = self._paths.get(id_)
        if path is None:
            location = self._call("GET", f"/stacks/{quote(id_, safe='')}", redirected=True)
            _, _, place = urlsplit(str(location)).path.partition("/stacks/")
            if place.count("/") != 1 or ".." in place:
                raise ProviderError(f"{self.endpoint.region} leads to no stack", "UnexpectedAnswer")
            path = self._paths[id_] = f"/stacks/{place}"
        return path

    def _call(
        self, method: str, path: str, body: JsonMapping | None = None, *, redirected: bool = False
    ) -> Any:
        """Return the decoded response; with `redirected`, the address of a redirect.

        Raises:
            Gone, ProviderError: the API refused, or did not respond.
        """
        status, headers, data = self._answer(method, path, body)
        if status == httpx.codes.UNAUTHORIZED and self.endpoint.renew is not None:  # for example, revoked
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

    def _refusal(self, status: int, answer: object) -> Exception:
        """Return the error that a refusal means."""
        error = answer.get("error") if isinstance(answer, dict) else None
        error = error if isinstance(error, dict) else {}
        error_type, message = (
            str(error.get("type") or ""),
            str(error.get("message") or f"it answered {status}"),
        )
        if status == httpx.codes.NOT_FOUND and error_type in MISSING:
            return Gone(message)
        if status in UNCERTAIN:
            return ProviderGatewayFailed(f"{self.endpoint.region}: {message}", error_type or "ServiceError")
        if error_type == "ActionInProgress":
            return ProviderChanging(f"{self.endpoint.region}: {message}", error_type)
        if status in BUSY:
            return ProviderBusy(f"{self.endpoint.region}: {message}", error_type or "ServiceBusy")
        return ProviderError(message, error_type or f"HTTP{status}")

    def _answer(self, method: str, path: str, body: JsonMapping | None) -> tuple[int, httpx.Headers, bytes]:
        region = self.endpoint.region
        content = None if body is None else orjson.dumps(body)
        try:
            url = httpx.URL(f"{self.endpoint.url}{path}")
            with open_response(
                method,
                httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
                self._headers(url, content),
                Deadline(self.deadline_seconds),
                body=content,
                context=self._authorities() if url.scheme == "https" else None,
            ) as answer:
                data = read_body(answer, MAX_BYTES)
        except (httpx.InvalidURL, httpcore.UnsupportedProtocol) as error:
            raise ProviderError(f"region {region} has an invalid URL: {error}", "InvalidURL") from error
        except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
            raise ProviderUnreachable(
                f"region {region} cannot be reached: {error}", "ConnectionError"
            ) from error
        except httpcore.TimeoutException as error:  # sent, and possibly carried out
            raise ProviderSilent(f"region {region} did not answer in time", "Timeout") from error
        except (httpcore.NetworkError, httpcore.ProtocolError) as error:  # as above
            why = str(error) or type(error).__name__
            raise ProviderSilent(f"region {region} did not answer: {why}", "ConnectionError") from error
        if len(data) > MAX_BYTES:
            raise ProviderError(f"region {region} sent a response that is too large", "UnexpectedAnswer")
        return answer.status, httpx.Headers(answer.headers), data

    def _headers(self, url: httpx.URL, content: bytes | None) -> list[tuple[bytes, bytes]]:
        headers = [
            (b"Host", url.netloc),
            (b"Accept", b"application/json"),
            (b"Accept-Encoding", b"identity"),
            (b"Content-Type", b"application/json"),
            (b"User-Agent", b"stack-orchestrator"),
        ]
        if self.endpoint.token:
            headers.append((b"X-Auth-Token", self.endpoint.token.encode()))
        if content is not None:
            headers.append((b"Content-Length", str(len(content)).encode()))
        return headers

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
