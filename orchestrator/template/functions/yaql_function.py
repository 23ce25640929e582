"""`yaql` (docs/internals/hot-language.md §5.3): expressions of a query language, evaluated on data.

The expressions are untrusted, and the library limits neither the time nor, within a single step, the memory:
a regular expression, a power or a chain of replacements may run without bound. They are therefore evaluated
in separate processes (`yaql_process.py`), started on first use: one, and up to `SPARE_PROCESSES` more while
it is busy, so that the expressions of a tenant do not wait for those of another. A process may use `SECONDS`
of processor time per expression and `MEGABYTES` of memory, and is killed beyond that. Workers never load the
library.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import re
import select
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from orchestrator.errors import Misconfigured
from orchestrator.json_types import JsonObject
from orchestrator.template.functions.registry import References, is_call
from orchestrator.template.functions.resolved_argument import whole_function
from orchestrator.template.functions.time_budget import EXHAUSTED, charge, is_exhausted

SECONDS: Final = 5.0  # of processor time per expression
MEGABYTES: Final = 256
SPARE_PROCESSES: Final = 4  # a project has at most 4 requests in computation: operations/runtime/turns.py
PATIENCE: Final = 45.0  # seconds by the clock, on a machine with much else to do
# Of the environment, only what the interpreter needs: no setting, and so no key or address of the database.
VARIABLES: Final = ("PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "TZ")
PROGRAM: Final = Path(__file__).with_name("yaql_process.py")

NOT_A_MAP: Final = 'Arguments to "yaql" must be a map.'
FORM: Final = repr(
    '"yaql" syntax should be yaql:\n'
    "              expression: $.data.var1.sum()\n"
    "              data:\n"
    "                var1: [3, 2, 1]"
)
NOT_A_TEXT: Final = 'The "expression" argument to yaql must contain a string.'

MAX_CACHED_CHARACTERS: Final = 4096  # characters of a request or a result worth keeping
CHANGING: Final = re.compile(r"now|random|call")  # functions whose result varies between calls


@contextmanager
def _spending() -> Iterator[None]:
    """Charge the elapsed time to the request's time budget: the work is done by a separate process.

    Raises:
        ValueError: the budget is used up.
    """
    if is_exhausted():
        raise ValueError(EXHAUSTED)
    started = time.monotonic()
    try:
        yield
    finally:
        charge(time.monotonic() - started)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of an expression."""

    iterators: int = 200
    quota: int = 10_000  # bytes, as the library counts them: of each value on its own
    seconds: float = SECONDS


class Evaluator:
    """The evaluator process and its spare processes, with a cache of recent results."""

    def __init__(self, spares: int = SPARE_PROCESSES) -> None:
        """Start no process yet."""
        self.limits = Limits()
        self._spares = [Evaluator(0) for _ in range(spares)]
        self._lock = threading.Lock()  # of the process
        self._cache_lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._cache: OrderedDict[bytes, str] = OrderedDict()

    def check(self, expression: str) -> str:
        """Return the syntax error, "" if there is none."""
        return str(self._ask({"check": expression}).get("error") or "")

    def evaluate(self, expression: str, data: object) -> Any:
        """Return the result of an expression, as JSON data.

        Raises:
            ValueError: evaluation failed, or exceeded the limits.
        """
        request = {"expression": expression, "data": data}
        key = self._key(expression, request)
        with self._cache_lock:
            cached = self._cache.get(key)
            if cached is not None:
                self._cache.move_to_end(key)
                return json.loads(cached)
        with _spending():
            answer = self._ask(request)
        if "error" in answer:
            raise ValueError(answer["error"])
        if key and len(text := json.dumps(answer["value"])) <= MAX_CACHED_CHARACTERS:
            with self._cache_lock:
                self._cache[key] = text
                if len(self._cache) > 1024:
                    self._cache.popitem(last=False)
        return answer["value"]

    def _key(self, expression: str, request: JsonObject) -> bytes:
        if len(expression) > MAX_CACHED_CHARACTERS or CHANGING.search(expression):
            return b""
        text = json.dumps([request, self.limits.iterators, self.limits.quota])
        return b"" if len(text) > MAX_CACHED_CHARACTERS else hashlib.sha256(text.encode()).digest()

    def _ask(self, request: JsonObject) -> JsonObject:
        limits = {"iterators": self.limits.iterators, "quota": self.limits.quota}
        line = json.dumps({**request, **limits}).encode() + b"\n"
        for evaluator in (self, *self._spares):
            if evaluator._lock.acquire(blocking=False):
                break
        else:
            evaluator = self
            evaluator._lock.acquire()
        try:
            return evaluator._exchange(line)
        finally:
            evaluator._lock.release()

    def _exchange(self, line: bytes) -> JsonObject:
        """Return the response of the process to a request; the caller has the lock."""
        self._send(line)
        answered = self._read()
        if answered is None or answered.get("spent"):
            self._end()
        return answered or {"error": "The expression took too much time or memory"}

    def _send(self, line: bytes) -> None:
        try:
            _write(self._running(), line)
        except OSError:  # the process has ended since the last request
            self._end()
            try:
                _write(self._running(), line)
            except OSError as error:
                raise Misconfigured(f"yaql expressions cannot be evaluated: {error}") from error

    def _running(self) -> subprocess.Popen[bytes]:
        process = self._process
        if process is None:
            # -P: the folder of the program holds modules named like some of the standard library's.
            process = self._process = subprocess.Popen(
                [sys.executable, "-P", str(PROGRAM), str(self.limits.seconds), str(MEGABYTES)],
                bufsize=0,  # a fork of this process must not inherit buffered parts of a request
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={name: os.environ[name] for name in VARIABLES if name in os.environ},
            )
        return process

    def _read(self) -> JsonObject | None:
        """Return the response, None if the process died or timed out."""
        if self._process is None or self._process.stdout is None:
            return None
        descriptor = self._process.stdout.fileno()
        poll = select.poll()
        poll.register(descriptor, select.POLLIN | select.POLLHUP)
        until = time.monotonic() + PATIENCE
        parts: list[bytes] = []
        while not parts or not parts[-1].endswith(b"\n"):
            ready = poll.poll(max(0.0, until - time.monotonic()) * 1000)
            part = os.read(descriptor, 1 << 20) if ready else b""
            if not part:
                return None
            parts.append(part)
        response: JsonObject = json.loads(b"".join(parts))
        return response

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        _close(process)
        process.wait()

    def configure(self, limits: Limits) -> None:
        """Set the limits."""
        for evaluator in (self, *self._spares):
            evaluator.limits = limits
        self.close()

    def close(self) -> None:
        """End the processes; the next expression starts another."""
        for evaluator in (self, *self._spares):
            with evaluator._lock:
                evaluator._end()

    def forget(self) -> None:
        """Abandon the processes after a fork: they belong to the parent."""
        for evaluator in self._spares:
            evaluator.forget()
        self._lock, self._cache_lock = threading.Lock(), threading.Lock()
        process, self._process = self._process, None
        if process is not None:
            process.returncode = 0  # not a child of this process
            _close(process)


def _write(process: subprocess.Popen[bytes], line: bytes) -> None:
    if process.stdin is not None:
        rest = memoryview(line)
        while rest:
            rest = rest[os.write(process.stdin.fileno(), rest) :]


def _close(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


_evaluator: Final = Evaluator()
atexit.register(_evaluator.close)
os.register_at_fork(after_in_child=_evaluator.forget)


def configure(limit_iterators: int = 200, memory_quota: int = 10_000, seconds: float = SECONDS) -> None:
    """Set the limits of an expression: items of an iteration, bytes of a value, processor time."""
    _evaluator.configure(Limits(limit_iterators, memory_quota, seconds))
    _fault.cache_clear()


@lru_cache(maxsize=1024)
def _fault(expression: str) -> str:
    return _evaluator.check(expression)


def _check_yaql(args: object, references: References) -> None:  # noqa: ARG001
    if not isinstance(args, dict) or is_call(args):
        raise TypeError(NOT_A_MAP)
    if "expression" not in args or not args.keys() <= {"expression", "data"}:
        raise ValueError(FORM)
    expression = args["expression"]
    if is_call(expression):
        return
    if not isinstance(expression, str):
        raise TypeError(NOT_A_TEXT)
    fault = _fault(expression)
    if fault:
        raise ValueError(f"Bad expression {fault}.")


@whole_function("yaql", since="2016-10-14", check=_check_yaql)
def yaql(args: Any) -> Any:
    """``{yaql: {expression: $.data.sum(), data: [1, 2]}}`` gives ``3``."""
    expression = args["expression"]
    if not isinstance(expression, str):
        raise TypeError(NOT_A_TEXT)
    return _evaluator.evaluate(expression, args.get("data", {}))
