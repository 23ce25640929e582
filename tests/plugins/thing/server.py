"""The provider for tests: a process that creates things and logs them.

``python server.py LOG [PORT]`` serves on 127.0.0.1, prints its URL, and appends a JSON line to LOG for each
action (`event`, `token`, `id`, `name`, `time`), synced before the answer. Started on an existing log it has
the things of that log. Creation is deliberately not idempotent: two requests create two things, and the log
shows both.

    POST   /things            create a thing: token, name, value, and its misbehaviour:
                              delay       seconds until it is ready
                              slow        seconds before its creation (which happens even without a client)
                              slow_after  seconds between its creation and the answer
                              fail_times  number of requests with this token that are refused with 503
                              error       it becomes "error" permanently
                              error_times number of things of this name that become "error" once
                              silent      nothing is created and no answer comes
    GET    /things?token=T    things created with a token, oldest first
    GET    /things/ID         a thing: id, name, value, serial, status
    PUT    /things/ID         change its value
    DELETE /things/ID         delete it
    POST   /noise             outages   end of the outage of each service, a timestamp
                              stuck     fraction of things that never become ready
                              held      fraction of changes that are carried out up to HELD_SECONDS later,
                                        with or without their client
    GET    /noise             held_until  when the last held change is carried out, a timestamp

The services are `service-0` to `service-2`, by a hash of the thing's name. A thing whose name begins with
`probe` is in no service, and always becomes ready.
"""

from __future__ import annotations

import json
import math
import os
import random
import sys
import threading
import time
import zlib
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

HELD_SECONDS = 40.0


class World:
    """All things, and the log of the actions on them."""

    def __init__(self, log: Path) -> None:
        self.lock = threading.Lock()
        self.things: dict[str, dict[str, Any]] = {}
        self.refusals: Counter[str] = Counter()
        self.made: Counter[str] = Counter()
        self.serial = 0
        self.outages: dict[str, float] = {}
        self.stuck = self.held = self.held_until = 0.0
        for line in log.read_text().splitlines() if log.exists() else ():
            self._replay(json.loads(line))
        self.log = log.open("a", encoding="utf-8")

    def _replay(self, entry: dict[str, Any]) -> None:
        match entry["event"]:
            case "created":
                self.things[entry["id"]] = entry["thing"]
                self.made[entry["name"]] += 1
                self.serial = entry["thing"]["serial"]
            case "updated":
                self.things[entry["id"]]["value"] = entry["value"]
            case "deleted":
                del self.things[entry["id"]]
            case "refused":
                self.refusals[entry["token"]] += 1

    def write(self, event: str, token: str, id: str | None, name: str, **options: Any) -> None:
        entry = {"event": event, "token": token, "id": id, "name": name, "time": time.time(), **options}
        self.log.write(json.dumps(entry) + "\n")
        self.log.flush()
        os.fsync(self.log.fileno())

    def refuse(self, body: dict[str, Any]) -> bool:
        with self.lock:
            if self.refusals[body["token"]] >= body.get("fail_times", 0):
                return False
            self.refusals[body["token"]] += 1
            self.write("refused", body["token"], None, body["name"])
            return True

    def set_noise(self, body: dict[str, Any]) -> None:
        with self.lock:
            self.outages, self.stuck, self.held = body["outages"], body["stuck"], body["held"]

    def hold_seconds(self, name: str) -> float:
        """Return how long a change of the thing with this name is held."""
        with self.lock:
            if not service_of(name) or random.random() >= self.held:
                return 0.0
            seconds = random.uniform(1.0, HELD_SECONDS)
            self.held_until = max(self.held_until, time.time() + seconds)
            return seconds

    def is_out(self, name: str) -> bool:
        """Return whether the service of the thing with this name is in an outage."""
        return time.time() < self.outages.get(service_of(name), 0.0)

    def make(self, body: dict[str, Any]) -> dict[str, Any]:
        with self.lock:
            self.serial += 1
            self.made[body["name"]] += 1
            stuck = bool(service_of(body["name"])) and random.random() < self.stuck
            thing = {
                "id": f"thing-{self.serial}",
                "token": body["token"],
                "name": body["name"],
                "value": body.get("value", ""),
                "serial": self.serial,
                "ready_at": math.inf if stuck else time.time() + body.get("delay", 0),
                "error": bool(body.get("error")),
                "error_once": self.made[body["name"]] <= body.get("error_times", 0),
            }
            self.things[thing["id"]] = thing
            self.write("created", thing["token"], thing["id"], thing["name"], thing=thing)
            return thing

    def change(self, id: str, body: dict[str, Any]) -> dict[str, Any] | None:
        with self.lock:
            thing = self.things.get(id)
            if thing is not None:
                thing["value"] = body["value"]
                self.write("updated", body.get("token", ""), id, thing["name"], value=body["value"])
            return thing

    def remove(self, id: str) -> bool:
        with self.lock:
            thing = self.things.pop(id, None)
            if thing is not None:
                self.write("deleted", thing["token"], id, thing["name"])
            return thing is not None

    def with_token(self, token: str) -> list[dict[str, Any]]:
        with self.lock:
            return [shown(thing) for thing in self.things.values() if thing["token"] == token]


def service_of(name: str) -> str:
    """Return the service of a thing, "" if it has none."""
    return "" if name.startswith("probe") else f"service-{zlib.crc32(name.encode()) % 3}"


def shown(thing: dict[str, Any]) -> dict[str, Any]:
    ready = time.time() >= thing["ready_at"]
    bad = "error" if thing["error"] else "error once" if thing["error_once"] else None
    public = {key: thing[key] for key in ("id", "token", "name", "value", "serial")}
    return {**public, "status": "building" if not ready else bad or "ready"}


class Handler(BaseHTTPRequestHandler):
    """A request."""

    protocol_version = "HTTP/1.1"
    world: World
    stopping = threading.Event()

    def do_POST(self) -> None:
        body = self._body()
        if self.path == "/noise":
            self.world.set_noise(body)
            self._answer(200, {})
            return
        if self._is_out(body["name"]):
            return
        if body.get("silent"):
            self.stopping.wait()
            self.close_connection = True
            return
        if self.world.refuse(body):
            self._answer(503, {"error": "busy"})
            return
        self.stopping.wait(body.get("slow", 0))
        thing = self.world.make(body)
        self.stopping.wait(body.get("slow_after", 0))
        self._answer(201, shown(thing))

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        if url.path == "/noise":
            self._answer(200, {"held_until": self.world.held_until})
            return
        if url.path == "/things":
            query = {key: values[0] for key, values in parse_qs(url.query).items()}
            if not self._is_out(query.get("name", "probe")):
                self._answer(200, self.world.with_token(query.get("token", "")))
            return
        if self._is_out(self._name()):
            return
        thing = self.world.things.get(self._id())
        self._answer(200, shown(thing)) if thing else self._answer(404, {"error": "no such thing"})

    def do_PUT(self) -> None:
        body = self._body()
        if self._is_out(self._name()):
            return
        self.stopping.wait(body.get("slow", 0) + self.world.hold_seconds(self._name()))
        thing = self.world.change(self._id(), body)
        self._answer(200, shown(thing)) if thing else self._answer(404, {"error": "no such thing"})

    def do_DELETE(self) -> None:
        if self._is_out(self._name()):
            return
        self._answer(*((200, {}) if self.world.remove(self._id()) else (404, {"error": "no such thing"})))

    def _is_out(self, name: str) -> bool:
        """Return whether the service is in an outage; the request is then answered."""
        out = self.world.is_out(name)
        if out:
            self._answer(503, {"error": "outage"})
        return out

    def _name(self) -> str:
        thing = self.world.things.get(self._id())
        return thing["name"] if thing else "probe"  # a missing thing is in no service

    def _id(self) -> str:
        return urlsplit(self.path).path.rpartition("/")[2]

    def _body(self) -> dict[str, Any]:
        read: dict[str, Any] = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        return read

    def _answer(self, status: int, body: Any) -> None:
        data = json.dumps(body).encode()
        try:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        except OSError:  # the client is gone: the action stays done
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the log is the log."""


class Server(ThreadingHTTPServer):
    """All requests, each in a thread."""

    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore clients that died during a call; any other error is a bug of the server."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def main() -> None:
    """Serve until killed."""
    log, port = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    Handler.world = World(log)
    server = Server(("127.0.0.1", port), Handler)
    print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
