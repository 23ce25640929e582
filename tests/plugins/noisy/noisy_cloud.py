"""An unreliable cloud: several services in a single process, with objects, a call log, and faults on demand.

`python noisy_cloud.py [PORT]` serves HTTP on loopback and prints its URL. State is kept in memory.

* `POST /TENANT/SERVICE/VERB[/ID]` is a call of `noisy_client.py`. A tenant is a project, so that concurrent
  tests do not see the objects or the faults of each other.
* `POST /control/TENANT/ACTION` is a request of a test: for the objects, the call log, and the faults.

A fault applies to the calls that it matches, until it is removed or has been applied `times` times. Effects:

* `busy` (503), `quota` (429), `refuse` (400): rejected without effect;
* `lost` (504): no effect, and no answer of the service; `silent` (504): performed, but the answer is lost;
* `hold`: accepted, and unfinished until the test finishes it; `break`: accepted, the object is then in error.
"""

from __future__ import annotations

import fnmatch
import json
import sys
import threading
import time
from dataclasses import asdict, dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

REJECTED = {"busy": 503, "quota": 429, "refuse": 400, "lost": 504}
PENDING = {"create": "BUILD", "update": "UPDATING", "delete": "DELETING"}


@dataclass
class Fault:
    """An effect, and the calls to which it applies. Patterns are those of `fnmatch`."""

    id: int
    effect: str
    services: list[str] | None = None  # None: all
    verbs: list[str] | None = None  # None: all
    name: str = "*"  # of the resource in the template
    label: str = "*"
    times: int | None = None  # None: until it is removed

    def matches(self, service: str, verb: str, name: str, label: str) -> bool:
        """Return whether the fault applies to this call."""
        return (
            (self.services is None or service in self.services)
            and (self.verbs is None or verb in self.verbs)
            and fnmatch.fnmatchcase(name, self.name)
            and fnmatch.fnmatchcase(label, self.label)
        )


@dataclass
class Item:
    """An object of a service."""

    id: str
    service: str
    token: str
    name: str  # of the resource in the template
    owner: str  # the physical name that the orchestrator requested
    properties: dict[str, Any]
    state: str = "ACTIVE"  # BUILD, ACTIVE, UPDATING, DELETING, ERROR, SUSPENDED
    serial: int = 0
    was_active: bool = False


@dataclass
class Tenant:
    """The objects, faults and calls of a project."""

    items: dict[str, Item] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    calls: list[dict[str, Any]] = field(default_factory=list)


class Rejected(Exception):
    """A call that was answered with an error."""

    def __init__(self, status: int, outcome: str) -> None:
        super().__init__(outcome)
        self.status, self.outcome = status, outcome


class Cloud:
    """All tenants; each method holds the lock."""

    def __init__(self) -> None:
        self.tenants: dict[str, Tenant] = {}
        self.lock = threading.RLock()
        self.serial = 0

    def tenant(self, name: str) -> Tenant:
        """Return the tenant, new if unknown."""
        with self.lock:
            return self.tenants.setdefault(name, Tenant())

    def call(self, tenant: str, service: str, verb: str, id_: str, body: dict[str, Any]) -> tuple[int, Any]:
        """Perform a call of the orchestrator, with the faults that apply; log it."""
        with self.lock:
            owner = self.tenant(tenant)
            item = owner.items.get(id_)
            label = str(body.get("properties", {}).get("label", ""))
            name = str(body.get("name", ""))
            if item is not None:
                name, label = item.name, str(item.properties.get("label", ""))
            entry = {
                "n": len(owner.calls) + 1,
                "at": time.time(),
                "service": service,
                "verb": verb,
                "id": id_ or None,
                "name": name,
                "token": body.get("token", item.token if item else None),
                "state": item.state if item else None,  # before the call
                "outcome": "ok",
            }
            owner.calls.append(entry)
            effect = self._effect(owner, service, verb, name, label)
            if effect in REJECTED:
                entry["outcome"] = effect
                return REJECTED[effect], {"error": effect}
            try:
                answer = self._perform(owner, service, verb, item, body, effect)
            except Rejected as rejected:
                entry["outcome"] = rejected.outcome
                return rejected.status, {"error": rejected.outcome}
            if isinstance(answer, dict):
                entry["id"] = answer.get("id", entry["id"])
            if effect == "silent":
                entry["outcome"] = effect
                return 504, {"error": effect}
            return 200, answer

    def _effect(self, owner: Tenant, service: str, verb: str, name: str, label: str) -> str:
        for fault in owner.faults:
            if fault.matches(service, verb, name, label):
                if fault.times is not None:
                    fault.times -= 1
                    if fault.times <= 0:
                        owner.faults.remove(fault)
                return fault.effect
        return ""

    def _perform(
        self, owner: Tenant, service: str, verb: str, item: Item | None, body: dict[str, Any], effect: str
    ) -> Any:
        if verb == "create":
            self.serial += 1
            item = Item(
                f"{service}-{self.serial}",
                service,
                body["token"],
                body["name"],
                body["owner"],
                body["properties"],
                serial=self.serial,
            )
            owner.items[item.id] = item
        elif verb == "find":
            found = [item for item in owner.items.values() if item.token == body["token"]]
            if not found:
                raise Rejected(404, "missing")
            return asdict(found[0])
        if item is None:
            raise Rejected(404, "missing")
        if verb == "update":
            item.properties = {**item.properties, **body["properties"]}
        elif verb in ("suspend", "resume"):
            item.state = "SUSPENDED" if verb == "suspend" else "ACTIVE"
        if verb in PENDING:
            item.state = PENDING[verb]
            if effect == "break":
                item.state = "ERROR"
            elif effect != "hold":
                self.finish(owner, item)
        return asdict(item)

    def finish(self, owner: Tenant, item: Item) -> None:
        """Finish the operation that is in progress."""
        if item.state == "DELETING":
            del owner.items[item.id]
        else:
            item.state, item.was_active = "ACTIVE", True

    def control(self, tenant: str, action: str, body: dict[str, Any]) -> Any:
        """Perform a request of a test."""
        with self.lock:
            owner = self.tenant(tenant)
            match action:
                case "state":
                    return {
                        "objects": [asdict(item) for item in owner.items.values()],
                        "calls": owner.calls[body.get("after", 0) :],
                    }
                case "fault":
                    self.serial += 1
                    owner.faults.append(fault := Fault(self.serial, **body))
                    return asdict(fault)
                case "clear":
                    owner.faults = [fault for fault in owner.faults if fault.id != body.get("id", fault.id)]
                case "finish":
                    self.finish(owner, owner.items[body["id"]])
                case "change":
                    item = owner.items[body["id"]]
                    item.state = body.get("state", item.state)
                    item.properties = {**item.properties, **body.get("properties", {})}
                case "remove":
                    del owner.items[body["id"]]
            return {}


class Handler(BaseHTTPRequestHandler):
    """A request. Its method is always POST, and its body contains all parameters."""

    protocol_version = "HTTP/1.1"
    cloud = Cloud()

    def do_POST(self) -> None:
        """Answer `/TENANT/SERVICE/VERB[/ID]` and `/control/TENANT/ACTION`."""
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        parts = urlsplit(self.path).path.strip("/").split("/")
        if parts[0] == "control":
            self._answer(200, self.cloud.control(parts[1], parts[2], body))
            return
        tenant, service, verb, *rest = parts
        self._answer(*self.cloud.call(tenant, service, verb, rest[0] if rest else "", body))

    def do_GET(self) -> None:
        """Answer a health check."""
        self._answer(200, {})

    def _answer(self, status: int, body: Any) -> None:
        data = json.dumps(body).encode()
        try:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        except OSError:  # the client has disconnected; the call is performed
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Write no access log; `Tenant.calls` is the log."""


class Server(ThreadingHTTPServer):
    """A thread for each connection."""

    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore disconnected clients; any other error is a bug."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def main() -> None:
    """Serve until killed."""
    server = Server(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 0), Handler)
    print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
