"""API requests per second: show a stack, look it up by name, list its resources and its events.

The stacks are inserted as rows: a thousand stacks of a hundred resources, and a stack of a hundred thousand
for comparison. Separate processes send the requests over a few open connections, each request to another
stack of the project.
"""

from __future__ import annotations

import http.client
import multiprocessing
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from statistics import median
from typing import Any, Final
from urllib.parse import urlsplit

import orjson

from qa.bench.counters import Connection
from qa.bench.measure import Unfinished, percentile
from qa.bench.processes import Watch
from qa.bench.servers import System

PROJECT: Final = "rates"
STACKS, SIZE, LARGE = 1_000, 100, 100_000
CLIENTS = 4  # connections, each a process
REQUESTS = 2_000  # of each kind
PAIRS = 300  # requests to the small and the large stack in turn
PAGE = 100
KINDS: Final = ("show", "lookup", "resources", "events")

TEMPLATE: Final = b'{"heat_template_version": "2021-04-16", "resources": {}}'
# Stacks named by %(name)s and a number, with revisions, definitions (each requires the previous definition),
# resources and events; set-based, so that a hundred thousand resources take seconds.
MAKE: Final = """
WITH content AS (
    INSERT INTO content (hash, body) VALUES (sha256(%(template)s), %(template)s) ON CONFLICT DO NOTHING
), s AS (
    INSERT INTO stack (id, root_id, uuid, project_id, name, action, status, status_reason, traversal)
        OVERRIDING SYSTEM VALUE
    SELECT x.id, x.id, gen_random_uuid(), %(project)s, %(name)s || x.n, 'CREATE', 'COMPLETE',
        'Stack CREATE completed successfully', 1
    FROM (SELECT nextval(pg_get_serial_sequence('stack', 'id')) AS id, n
        FROM generate_series(1, %(stacks)s) AS n) AS x
    RETURNING id, uuid, name
), v AS (
    INSERT INTO revision (stack_id, number, action, template_hash, outline, traversal, outcome, ended_at)
    SELECT s.id, 1, 'CREATE', sha256(%(template)s), %(outline)s::json, 1, 'complete', now() FROM s
), d AS (
    INSERT INTO resource_definition (stack_id, name, digest, body, requires, valid_from)
    SELECT s.id, 'r' || to_char(n, 'FM000000'), 'd', '{"type": "OS::Heat::TestResource"}',
        CASE WHEN n > 1 THEN ARRAY['r' || to_char(n - 1, 'FM000000')] ELSE '{}' END, 1
    FROM s CROSS JOIN generate_series(1, %(size)s) AS n
), r AS (
    INSERT INTO resource (uuid, stack_id, name, type, physical_id, action, status, attributes)
    SELECT gen_random_uuid(), s.id, 'r' || to_char(n, 'FM000000'), 'OS::Heat::TestResource',
        s.name || '-r' || n, 'CREATE', 'COMPLETE', '{"output": "as asked for"}'
    FROM s CROSS JOIN generate_series(1, %(size)s) AS n
), e AS (
    INSERT INTO event (stack_id, resource_name, resource_type, physical_id, action, status, reason)
    SELECT s.id, 'r' || to_char(n, 'FM000000'), 'OS::Heat::TestResource', s.name || '-r' || n, 'CREATE',
        what, 'state changed'
    FROM s CROSS JOIN generate_series(1, %(size)s) AS n
        CROSS JOIN unnest(ARRAY['IN_PROGRESS', 'COMPLETE']) AS what
)
SELECT s.name, s.uuid::text FROM s ORDER BY s.id
"""
SETTLE: Final = """
UPDATE stack SET revision_id = v.id, good_revision_id = v.id FROM revision v
WHERE v.stack_id = stack.id AND stack.project_id = %s AND stack.revision_id IS NULL
"""
OUTLINE: Final = {"version": "2021-04-16", "description": "", "parameters": {}, "outputs": {}}

Place = tuple[str, str]  # a stack's name and id


@dataclass(frozen=True, slots=True)
class ApiRun:
    """Requests of a single type."""

    kind: str
    per_second: float
    p99_ms: float
    cpu_ms: dict[str, float]  # per request, by role
    # median of requests to the large stack over median of requests to a small stack, sent in turn
    grown: float
    foreign_share: float | None  # the share of the machine that went to strangers

    @property
    def cpu_per_second(self) -> float | None:
        """Requests per second of processor time, of the API process alone."""
        spent = self.cpu_ms.get("api")
        return 1_000.0 / spent if spent else None

    def __str__(self) -> str:
        """Return the run as a line of text."""
        spent = ", ".join(f"{name} {ms:.2f}" for name, ms in sorted(self.cpu_ms.items()))
        return (
            f"api {self.kind}: {self.per_second:,.0f}/s, p99 {self.p99_ms:.0f} ms; CPU ms each: {spent}; "
            f"{self.grown:.2f} times that with {LARGE:,} resources"
        )


def measure_api(on: System, db: Connection) -> list[ApiRun]:
    """Create the project, and measure each type of request.

    Raises:
        Unfinished: a response had an unexpected status or body.
    """
    small = make(db, "small", STACKS, SIZE)
    [large] = make(db, "large", 1, LARGE)
    for table in ("stack", "revision", "resource_definition", "resource", "event"):
        db.execute(f"VACUUM ANALYZE {table}")
    return [measure_kind(on, kind, small, large) for kind in KINDS]


def make(db: Connection, name: str, stacks: int, size: int) -> list[Place]:
    """Write stacks that are complete; return where they are."""
    values = {"name": name, "stacks": stacks, "size": size, "project": PROJECT, "template": TEMPLATE}
    rows = db.execute(MAKE, {**values, "outline": orjson.dumps(OUTLINE).decode()}).fetchall()
    db.execute(SETTLE, (PROJECT,))
    return [(str(name), str(uuid)) for name, uuid in rows]


def measure_kind(on: System, kind: str, small: Sequence[Place], large: Place) -> ApiRun:
    """Measure a request type: maximum concurrency first, then small and large stacks in turn."""
    seconds_of(on.url, kind, small[:20])  # everything was done once
    shares = [small[number::CLIENTS] for number in range(CLIENTS)]
    each = REQUESTS // CLIENTS
    # Its processes are started afresh: threads of ours hold locks.
    with ProcessPoolExecutor(CLIENTS, multiprocessing.get_context("spawn")) as pool:
        list(pool.map(seconds_of, [on.url] * CLIENTS, [kind] * CLIENTS, [share[:5] for share in shares]))
        with Watch(on.roots) as watch:
            begun = time.monotonic()
            tasks = [pool.submit(seconds_of, on.url, kind, share, each) for share in shares]
            seconds = [item for task in tasks for item in task.result()]
            took = time.monotonic() - begun
    usage = watch.usage
    cpu_ms = {
        role: spent * 1_000 / len(seconds)
        for role, spent in usage.cpu_seconds.items()
        if role in {"api", "postgres"}
    }
    in_turn = seconds_of(on.url, kind, [small[0], large], 2 * PAIRS)
    grown = median(in_turn[1::2]) / median(in_turn[::2])
    rate = len(seconds) / took
    return ApiRun(kind, rate, percentile(seconds, 0.99) * 1_000, cpu_ms, grown, usage.foreign_share)


def seconds_of(url: str, kind: str, stacks: Sequence[Place], times: int | None = None) -> list[float]:
    """Request stack after stack over a single connection; return the seconds of each request.

    Raises:
        Unfinished: a response had an unexpected status or body.
    """
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=60)
    ask = ASKED[kind]
    result = []
    for number in range(len(stacks) if times is None else times):
        begun = time.perf_counter()
        ask(connection, *stacks[number % len(stacks)])
        result.append(time.perf_counter() - begun)
    connection.close()
    return result


def _answer(connection: http.client.HTTPConnection, path: str, status: int) -> Any:
    connection.request("GET", path)
    answer = connection.getresponse()
    text = answer.read()
    if answer.status != status:
        raise Unfinished(f"{path}: {answer.status} {text[:300]!r}")
    return answer.headers if status == 302 else orjson.loads(text)


def _show(connection: http.client.HTTPConnection, name: str, uuid: str) -> None:
    _answer(connection, f"/v1/{PROJECT}/stacks/{name}/{uuid}", 200)


def _lookup(connection: http.client.HTTPConnection, name: str, uuid: str) -> None:
    """Follow the redirect too: two requests that count as a single lookup."""
    headers = _answer(connection, f"/v1/{PROJECT}/stacks/{name}", 302)
    _answer(connection, urlsplit(headers["Location"]).path, 200)


def _resources(connection: http.client.HTTPConnection, name: str, uuid: str) -> None:
    body = _answer(connection, f"/v1/{PROJECT}/stacks/{name}/{uuid}/resources?limit={PAGE}", 200)
    if len(body["resources"]) != PAGE:
        raise Unfinished(f"{len(body['resources'])} resources on a page of {PAGE}")


def _events(connection: http.client.HTTPConnection, name: str, uuid: str) -> None:
    body = _answer(connection, f"/v1/{PROJECT}/stacks/{name}/{uuid}/events?limit={PAGE}", 200)
    if len(body["events"]) != PAGE:
        raise Unfinished(f"{len(body['events'])} events on a page of {PAGE}")


Ask = Callable[[http.client.HTTPConnection, str, str], None]
ASKED: Final[dict[str, Ask]] = {"show": _show, "lookup": _lookup, "resources": _resources, "events": _events}
