"""Create, update or delete a stack over HTTP and measure the cost, from the answer to COMPLETE."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace

import httpx
import orjson

from qa.bench import counters
from qa.bench.counters import Connection
from qa.bench.processes import Watch
from qa.bench.servers import System
from qa.bench.shapes import FILES, OPERATIONS, UPDATES, template

PROJECT = "bench"
POLL_SECONDS = 0.02  # the end is seen this late at most
LISTING_PAUSE = 0.01  # seconds between two listings of the second client
TIMEOUT_MINUTES = 600  # stack timeout: a million resources exceed any default
JSON = {"Content-Type": "application/json"}


class Unfinished(Exception):
    """A stack that failed or took too long; there are no figures."""


@dataclass(frozen=True, slots=True)
class Run:
    """An operation on a stack."""

    shape: str
    size: int
    operation: str
    request_seconds: float  # the POST's, PUT's or DELETE's own
    seconds: float  # from the answer to COMPLETE
    cpu_ms: dict[str, float]  # per resource, by role, the request included
    peak_mb: dict[str, float]  # of the largest process of a role
    foreign_share: float | None = None  # the share of the machine that went to strangers
    bytes_per_resource: float | None = None  # in the database, after a create
    list_p99_seconds: float | None = None  # of another client's GET /stacks during the request
    reads: dict[str, float] | None = None  # rows per resource, by table
    writes: dict[str, float] | None = None
    removals: dict[str, float] | None = None
    index_entries: dict[str, float] | None = None  # entries read per resource, by index
    reading_seconds: float | None = None  # of a request that only parses and checks the same template
    empty_per_second: float | None = None  # empty tasks, just before and just after it
    empty_cpu_ms: float | None = None  # processor milliseconds of an empty task

    @property
    def per_second(self) -> float:
        """Resources per second."""
        return self.size / self.seconds

    @property
    def times_empty(self) -> float | None:
        """Resources per second over empty tasks per second."""
        return self.per_second / self.empty_per_second if self.empty_per_second else None

    @property
    def empties_each(self) -> float | None:
        """Cost of a resource in empty tasks: independent of the speed of the machine."""
        return 1 / self.times_empty if self.times_empty else None

    @property
    def beyond_reading(self) -> float | None:
        """Seconds from the request to COMPLETE, without parsing and validation of the template."""
        if self.reading_seconds is None:
            return None
        return max(0.0, self.request_seconds - self.reading_seconds) + self.seconds

    def total(self, counts: dict[str, float] | None) -> float | None:
        """Rows of all tables, for the whole operation."""
        return None if counts is None else sum(counts.values()) * self.size

    @property
    def ms_each(self) -> float:
        """Milliseconds per resource: of a chain, per link."""
        return self.seconds * 1000 / self.size

    @property
    def total_cpu_ms(self) -> float:
        """Processor milliseconds per resource, of everything but the benchmark itself."""
        return sum(spent for name, spent in self.cpu_ms.items() if name != "bench")


@dataclass(slots=True)
class Listing:
    """A second client, which lists the stacks over and over."""

    url: str
    seconds: list[float] = field(default_factory=list)
    failed: int = 0
    _over: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """List the stacks until the operation has ended."""
        with httpx.Client(timeout=60.0, trust_env=False) as client:
            while not self._over.is_set():
                begun = time.perf_counter()
                try:
                    self.failed += not client.get(self.url).is_success
                except httpx.HTTPError:
                    self.failed += 1
                self.seconds.append(time.perf_counter() - begun)
                self._over.wait(LISTING_PAUSE)

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """List for the duration of a block."""
        thread = threading.Thread(target=self.run, name="listing", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest of `values` that at least `share` of them do not exceed."""
    ranked = sorted(values)
    return ranked[max(0, -(-len(ranked) * round(share * 1000) // 1000) - 1)]


class Measurement:
    """Measures stacks on a running system, in sequence."""

    def __init__(self, on: System, db: Connection) -> None:
        """Ask over HTTP, look on over `db`."""
        self.system, self.db = on, db
        self.stacks = f"{on.url}/v1/{PROJECT}/stacks"
        self.client = httpx.Client(timeout=900.0, trust_env=False)

    def warm_up(self, size: int = 200) -> None:
        """Let every process have done everything once."""
        for shape in ("flat", "layered"):
            list(self.measure(shape, size))

    def measure(
        self,
        shape: str,
        size: int,
        operations: Sequence[str] = OPERATIONS,
        *,
        rows: bool = False,
        listing: bool = False,
    ) -> Iterator[Run]:
        """Yield a run for each operation asked for; creating comes first in any case.

        `rows` counts the rows touched, which takes half a minute more; `listing` has a second client ask for
        lists during the POST.

        Raises:
            Unfinished: the stack failed, or the deadline passed.
        """
        counters.empty(self.db)
        held, other = counters.bytes_held(self.db), Listing(self.stacks)
        post = self._request("POST", self.stacks, shape, size, "create")
        answer, created = self._run("create", post, shape, size, rows=rows, other=other if listing else None)
        grown = (counters.bytes_held(self.db) - held) / size
        p99 = percentile(other.seconds, 0.99) if listing else None
        if "create" in operations:
            yield replace(created, bytes_per_resource=grown, list_p99_seconds=p99)
        del post
        place = answer.json()["stack"]["links"][0]["href"]
        reading = self._reading_seconds(shape, size) if "no-change" in operations else None
        for operation in OPERATIONS:
            if operation not in operations or operation == "create":
                continue
            if operation in UPDATES:
                request = self._request("PUT", place, shape, size, operation)
            else:
                request = self.client.build_request("DELETE", place)
            run = self._run(operation, request, shape, size, rows=rows)[1]
            yield replace(run, reading_seconds=reading) if operation in UPDATES else run
        counters.empty(self.db)

    def _request(self, method: str, url: str, shape: str, size: int, operation: str) -> httpx.Request:
        """Return a request with a shape's template in it."""
        document: dict[str, object] = {"template": template(shape, size, operation)}
        if method == "POST":
            document["stack_name"] = f"{shape}-{size}"
        document["timeout_mins"] = TIMEOUT_MINUTES
        document["files"] = FILES.get(shape, {})
        return self.client.build_request(method, url, content=orjson.dumps(document), headers=JSON)

    def _reading_seconds(self, shape: str, size: int) -> float:
        """Return how long the API takes to parse and check the template, writing nothing down."""
        body = orjson.dumps({"template": template(shape, size), "files": FILES.get(shape, {})})
        url = f"{self.system.url}/v1/{PROJECT}/validate"
        request = self.client.build_request("POST", url, content=body, headers=JSON)
        begun = time.perf_counter()
        answer = self._answer(request)
        if not answer.is_success:
            raise Unfinished(f"validate {shape} {size}: {answer.status_code} {answer.text[:300]}")
        return time.perf_counter() - begun

    def _run(
        self,
        operation: str,
        request: httpx.Request,
        shape: str,
        size: int,
        *,
        rows: bool,
        other: Listing | None = None,
    ) -> tuple[httpx.Response, Run]:
        before = self._rows() if rows else None
        with Watch(self.system.roots) as watch:
            with other.going_on() if other else nullcontext():
                begun = time.perf_counter()
                answer = self._answer(request)
                answered = time.perf_counter()
            if not answer.is_success:
                raise Unfinished(f"{operation} {shape} {size}: {answer.status_code} {answer.text[:300]}")
            if other and other.failed:
                raise Unfinished(f"{other.failed} of {len(other.seconds)} lists failed during the POST")
            polls = self._until_complete(f"{shape}-{size}", operation, 60 + size / 100)
            ended = time.perf_counter()
        reads, writes, removals, entries = None, None, None, None
        if before is not None:
            touched = self._rows().since(before)
            touched.read["stack"] -= polls  # our own looking on
            reads, writes = _each(touched.read, size), _each(touched.written, size)
            removals, entries = _each(touched.removed, size), _each(touched.entries, size)
        run = Run(
            shape,
            size,
            operation,
            request_seconds=answered - begun,
            seconds=ended - answered,
            cpu_ms={name: spent * 1000 / size for name, spent in watch.usage.cpu_seconds.items()},
            peak_mb=watch.usage.peak_mb,
            foreign_share=watch.usage.foreign_share,
            reads=reads,
            writes=writes,
            removals=removals,
            index_entries=entries,
        )
        return answer, run

    def _answer(self, request: httpx.Request) -> httpx.Response:
        try:
            return self.client.send(request)
        except httpx.HTTPError as error:
            raise Unfinished(f"{request.method} {request.url}: {error!r}") from error

    def _until_complete(self, name: str, operation: str, seconds: float) -> int:
        """Return the number of polls until the only stack reached its final state."""
        action = "UPDATE" if operation in UPDATES else operation.upper()
        query = "SELECT uuid::text, action, status, status_reason FROM stack WHERE project_id = %s"
        deadline = time.monotonic() + seconds
        polls = 0
        while True:
            polls += 1
            result = self.db.execute(query, (PROJECT,)).fetchone()
            assert result is not None
            uuid, observed, status, reason = result
            if observed == action and status == "COMPLETE":
                return polls
            if status == "FAILED":
                raise Unfinished(f"{operation} {name}: {reason}")
            if time.monotonic() > deadline:
                states = counters.progress(self.db, uuid)
                raise Unfinished(f"{operation} {name}: not complete after {seconds:.0f} s: {states}")
            time.sleep(POLL_SECONDS)

    def _rows(self) -> counters.Rows:
        """Return the counters once every idle backend has reported."""
        time.sleep(counters.FLUSH_SECONDS)
        return counters.rows(self.db)


def _each(counts: dict[str, int], size: int) -> dict[str, float]:
    """Return counts per resource, without untouched tables."""
    return {table: count / size for table, count in sorted(counts.items()) if count}
