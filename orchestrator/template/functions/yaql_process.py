"""The program that evaluates YAQL, run as a separate process by `yaql_function.py`; never imported.

It reads a JSON request per line and answers with a JSON line: ``{"check": expression}`` with ``{"error": text
or null}``, ``{"expression", "data", "iterators", "quota"}`` with ``{"value": …}`` or ``{"error": text}``;
"spent" in the response requests a new process. While it works, a timer counts its processor time and kills it
at the limit, in any state of the library. It exits at the end of its input.

It has no variables of the server, no open files but its pipes, and after its start no right to open files or
to start processes: an expression that escapes from the library finds no key and no address of the database.
"""

from __future__ import annotations

import collections.abc  # before the library, which uses it without importing it
import datetime
import json
import math
import re
import resource
import signal
import sys
from functools import lru_cache
from typing import Any, Final

import yaql  # type: ignore[import-untyped]

from orchestrator.json_types import JsonObject
from orchestrator.process_control import confine, yield_processor

NICENESS: Final = 10  # of this process: an expensive expression yields the processor to other requests
MAX_NODES: Final = 100_000  # values in a result
MAX_BYTES: Final = 8 * 1024 * 1024  # text in a result
UNSTORED: Final = re.compile("[\0\ud800-\udfff]")
INTEGERS: Final = range(-(2**63), 2**64)  # those that JSON readers agree about

# Creating an engine is slow, and expressions repeat, for example for each resource of a group.
factory: Final = yaql.YaqlFactory()
context: Final = yaql.create_context(finalizer=None)


@lru_cache(maxsize=8)
def engine(iterators: int, quota: int) -> Any:
    """Return the engine with these limits; conversion of the result is done in this module."""
    return factory.create(
        options={
            "yaql.limitIterators": iterators,
            "yaql.memoryQuota": quota,
            "yaql.convertOutputData": False,
        }
    )


@lru_cache(maxsize=256)
def parsed(expression: str, iterators: int, quota: int) -> Any:
    """Return an expression that can be evaluated."""
    return engine(iterators, quota)(expression)


class PlainValues:
    """Turns a result into JSON's types, with a bound for all of it."""

    def __init__(self, iterators: int) -> None:
        """Limit the number of items of an iteration."""
        self._iterators = iterators
        self._nodes = 0
        self._bytes = 0

    def of(self, value: object) -> Any:
        """Return the value as JSON data.

        Raises:
            ValueError, TypeError: too large, or not representable as JSON.
        """
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise ValueError("Expression consumed too much memory")
        if value is None or isinstance(value, bool | str | int | float):
            return self._scalar(value)
        if isinstance(value, datetime.datetime):
            return value.isoformat()
        if isinstance(value, datetime.timedelta):
            return value.total_seconds()
        if isinstance(value, collections.abc.Mapping):
            self._fits(len(value))
            return {self._key(key): self.of(item) for key, item in value.items()}
        if isinstance(value, set | frozenset):
            return sorted(self._items(value), key=repr)  # in some order, always the same
        if isinstance(value, collections.abc.Iterable):
            return self._items(value)
        type_name = type(value).__name__
        raise TypeError(f"The result of the expression is a {type_name}, which templates do not support")

    def _items(self, values: collections.abc.Iterable[Any]) -> list[Any]:
        made: list[object] = []
        for item in values:
            self._fits(len(made) + 1)
            made.append(self.of(item))
        return made

    def _fits(self, count: int) -> None:
        if 0 <= self._iterators < count:
            raise ValueError(f"Collection length exceeds {self._iterators} elements")

    def _scalar(self, value: object) -> Any:
        if isinstance(value, str):
            self._bytes += len(value)
            if self._bytes > MAX_BYTES:
                raise ValueError("Expression consumed too much memory")
            if UNSTORED.search(value):
                raise ValueError("The result of the expression contains NUL or half of a surrogate pair")
            return str(value)
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"The result of the expression is {value}, which templates do not support")
        if isinstance(value, int) and not isinstance(value, bool) and value not in INTEGERS:
            raise ValueError("The result of the expression is a number of more than 64 bits")
        return value

    def _key(self, key: object) -> str:
        if isinstance(key, collections.abc.Iterable) and not isinstance(key, str):
            raise TypeError("unhashable type: 'list'")
        key_ = self.of(key)
        return key_ if isinstance(key_, str) else json.dumps(key_)


def answer(request: JsonObject) -> JsonObject:
    """Return the response to a request."""
    try:
        if "check" in request:
            parsed(request["check"], request["iterators"], request["quota"])
            return {"error": None}
        limits = request["iterators"], request["quota"]
        result = parsed(request["expression"], *limits).evaluate(
            data={"data": request["data"]}, context=context.create_child_context()
        )
        return {"value": PlainValues(request["iterators"]).of(result)}
    except RecursionError:
        return {"error": "The expression is nested too deeply"}
    except MemoryError:
        return {"error": "Expression consumed too much memory", "spent": True}
    except StopIteration:
        return {"error": "The expression asks for an item of a collection that has none"}
    except Exception as error:  # the library raises exceptions of many classes
        return {"error": str(error) or "The expression has no result"}


def bound(megabytes: int) -> None:
    """Limit the growth of this process's memory."""
    with open("/proc/self/statm", "rb") as statm:  # noqa: PTH123 - avoids an import
        pages = int(statm.read().split()[0])
    limit = pages * resource.getpagesize() + megabytes * 1024 * 1024
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    if most == resource.RLIM_INFINITY or limit < most:  # the parent's limit may be lower
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def main() -> None:
    """Answer requests until the end of the input."""
    seconds, megabytes = float(sys.argv[1]), int(sys.argv[2])
    yield_processor(NICENESS, new_session=True)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process by closing the pipe
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    if sys.platform == "linux":
        bound(megabytes)
        datetime.datetime.strptime("2000Z", "%Y%z")  # imports a module: later no file can be opened
        confine()
    for line in sys.stdin.buffer:
        signal.setitimer(signal.ITIMER_PROF, seconds)
        made = json.dumps(answer(json.loads(line)))
        signal.setitimer(signal.ITIMER_PROF, 0)
        sys.stdout.write(made + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
