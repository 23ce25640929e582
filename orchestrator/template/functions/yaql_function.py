"""`yaql` (docs/internals/hot-language.md §5.3): an expression of a language of its own, over data.

Expressions are written by strangers, and the library that evaluates them bounds neither time nor, for a
single step, memory: a regular expression, a power or a chain of replacements may take for ever. They are
therefore evaluated in a process of their own (`yaql_process.py`), started with the first one, which may take
`SECONDS` of processor time for each and no more than `MEGABYTES`, and dies of anything beyond. No worker
ever loads the library.
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
from orchestrator.template.functions.registry import References, is_call
from orchestrator.template.functions.resolved_argument import whole_function
from orchestrator.template.functions.time_budget import SPENT, charge, is_spent

SECONDS: Final = 5.0  # of processor time for one expression
MEGABYTES: Final = 256
PATIENCE: Final = 45.0  # seconds by the clock, on a machine with much else to do
PROGRAM: Final = Path(__file__).with_name("yaql_process.py")

NOT_A_MAP: Final = 'Arguments to "yaql" must be a map.'
FORM: Final = repr(
    '"yaql" syntax should be yaql:\n'
    "              expression: $.data.var1.sum()\n"
    "              data:\n"
    "                var1: [3, 2, 1]"
)
NOT_A_TEXT: Final = 'The "expression" argument to yaql must contain a string.'

SMALL: Final = 4096  # characters of a request or a result worth keeping
CHANGING: Final = re.compile(r"now|random|call")  # what these give is another thing every time


@contextmanager
def _spending() -> Iterator[None]:
    """Take what happens in here off the request's allowance, by the clock: it is another process that works.

    Raises:
        ValueError: there is none left.
    """
    if is_spent():
        raise ValueError(SPENT)
    started = time.monotonic()
    try:
        yield
    finally:
        charge(time.monotonic() - started)


@dataclass(frozen=True, slots=True)
class Limits:
    """What one expression may use."""

    iterators: int = 200
    quota: int = 10_000  # bytes, as the library counts them: of each value on its own
    seconds: float = SECONDS


class Evaluator:
    """The process that evaluates, and what it found lately."""

    def __init__(self) -> None:
        """Start nothing yet."""
        self.limits = Limits()
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._known: OrderedDict[bytes, str] = OrderedDict()

    def check(self, expression: str) -> str:
        """Return what is wrong with the syntax, nothing if it is right."""
        return str(self._ask({"check": expression}).get("error") or "")

    def evaluate(self, expression: str, data: Any) -> Any:
        """Return what an expression makes of data, in JSON's types.

        Raises:
            ValueError: it cannot be evaluated, or not within the limits.
        """
        request = {"expression": expression, "data": data}
        key = self._key(expression, request)
        with self._lock:
            known = self._known.get(key)
            if known is not None:
                self._known.move_to_end(key)
                return json.loads(known)
        with _spending():
            found = self._ask(request)
        if "error" in found:
            raise ValueError(found["error"])
        if key and len(text := json.dumps(found["value"])) <= SMALL:
            with self._lock:
                self._known[key] = text
                if len(self._known) > 1024:
                    self._known.popitem(last=False)
        return found["value"]

    def _key(self, expression: str, request: dict[str, Any]) -> bytes:
        if len(expression) > SMALL or CHANGING.search(expression):
            return b""
        text = json.dumps([request, self.limits.iterators, self.limits.quota])
        return b"" if len(text) > SMALL else hashlib.sha256(text.encode()).digest()

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        limits = {"iterators": self.limits.iterators, "quota": self.limits.quota}
        line = json.dumps({**request, **limits}).encode() + b"\n"
        with self._lock:
            self._send(line)
            answered = self._read()
            if answered is None or answered.get("spent"):
                self._end()
            return answered or {"error": "The expression took too much time or memory"}

    def _send(self, line: bytes) -> None:
        try:
            _write(self._running(), line)
        except OSError:  # it ended since it was last asked, by nobody's fault
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
                bufsize=0,  # nothing of a request may be left behind in a fork of this process
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        return process

    def _read(self) -> dict[str, Any] | None:
        """Return the answer, or nothing when the process died over the question or keeps silent."""
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
        found: dict[str, Any] = json.loads(b"".join(parts))
        return found

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        _close(process)
        process.wait()

    def close(self) -> None:
        """End the process; the next expression starts another."""
        with self._lock:
            self._end()

    def forget(self) -> None:
        """Leave the process to the one that started it: this is a fork of that."""
        self._lock = threading.Lock()
        process, self._process = self._process, None
        if process is not None:
            process.returncode = 0  # not ours to wait for
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
    """Set what one expression may use: items of anything iterated, bytes of any value, processor time."""
    _evaluator.limits = Limits(limit_iterators, memory_quota, seconds)
    _evaluator.close()
    _fault.cache_clear()


@lru_cache(maxsize=1024)
def _fault(expression: str) -> str:
    return _evaluator.check(expression)


def _check_yaql(args: Any, found: References) -> None:  # noqa: ARG001
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
