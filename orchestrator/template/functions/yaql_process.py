"""The program that evaluates YAQL, run as a process of its own by `yaql_function.py`; imported by nobody.

It reads one JSON request per line and answers each with one JSON line: ``{"check": expression}`` with
``{"error": text or null}``, ``{"expression", "data", "iterators", "quota"}`` with ``{"value": …}`` or
``{"error": text}``; "spent" in that asks for another process. While it works, a timer counts its own seconds:
when they are over it dies, whatever the library is doing. It ends with its input.
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

MOST_NODES: Final = 100_000  # values in a result
MOST_BYTES: Final = 8 * 1024 * 1024  # text in a result
UNSTORED: Final = re.compile("[\0\ud800-\udfff]")
INTEGERS: Final = range(-(2**63), 2**64)  # those that JSON readers agree about

# What the engine is made of is slow to make; expressions come back, one for each resource of a group.
factory: Final = yaql.YaqlFactory()
context: Final = yaql.create_context(finalizer=None)


@lru_cache(maxsize=8)
def engine(iterators: int, quota: int) -> Any:
    """Return the engine with these limits; the result is made plain here, not there."""
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


class Plain:
    """Turns a result into JSON's types, with a bound for all of it."""

    def __init__(self, iterators: int) -> None:
        """Allow this many items in anything that is iterated over."""
        self._iterators = iterators
        self._nodes = 0
        self._bytes = 0

    def of(self, value: Any) -> Any:
        """Return the same in JSON's types.

        Raises:
            ValueError, TypeError: there is too much of it, or it has no such form.
        """
        self._nodes += 1
        if self._nodes > MOST_NODES:
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
        kind = type(value).__name__
        raise TypeError(f"The expression gives a {kind}, which is no value of a template")

    def _items(self, values: collections.abc.Iterable[Any]) -> list[Any]:
        made: list[Any] = []
        for item in values:
            self._fits(len(made) + 1)
            made.append(self.of(item))
        return made

    def _fits(self, count: int) -> None:
        if 0 <= self._iterators < count:
            raise ValueError(f"Collection length exceeds {self._iterators} elements")

    def _scalar(self, value: Any) -> Any:
        if isinstance(value, str):
            self._bytes += len(value)
            if self._bytes > MOST_BYTES:
                raise ValueError("Expression consumed too much memory")
            if UNSTORED.search(value):
                raise ValueError("The expression gives a text with NUL or half of a character in it")
            return str(value)
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"The expression gives {value}, which is no value of a template")
        if isinstance(value, int) and not isinstance(value, bool) and value not in INTEGERS:
            raise ValueError("The expression gives a number of more than 64 bits")
        return value

    def _key(self, key: Any) -> str:
        if isinstance(key, collections.abc.Iterable) and not isinstance(key, str):
            raise TypeError("unhashable type: 'list'")
        plain = self.of(key)
        return plain if isinstance(plain, str) else json.dumps(plain)


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Return what to answer to one request."""
    try:
        if "check" in request:
            parsed(request["check"], request["iterators"], request["quota"])
            return {"error": None}
        limits = request["iterators"], request["quota"]
        found = parsed(request["expression"], *limits).evaluate(
            data={"data": request["data"]}, context=context.create_child_context()
        )
        return {"value": Plain(request["iterators"]).of(found)}
    except RecursionError:
        return {"error": "The expression is nested too deeply"}
    except MemoryError:
        return {"error": "Expression consumed too much memory", "spent": True}
    except StopIteration:
        return {"error": "The expression asks for an item of a collection that has none"}
    except Exception as error:  # the library raises what it likes, of classes of its own
        return {"error": str(error) or "The expression has no result"}


def bound(megabytes: int) -> None:
    """Let this process grow by so much and no more."""
    with open("/proc/self/statm", "rb") as statm:  # noqa: PTH123 - nothing else is imported for it
        pages = int(statm.read().split()[0])
    limit = pages * resource.getpagesize() + megabytes * 1024 * 1024
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    if most == resource.RLIM_INFINITY or limit < most:  # or who started us allows less already
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def main() -> None:
    """Answer until there are no more requests."""
    seconds, megabytes = float(sys.argv[1]), int(sys.argv[2])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started us ends us, by closing the pipe
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    if sys.platform == "linux":
        bound(megabytes)
    for line in sys.stdin.buffer:
        signal.setitimer(signal.ITIMER_PROF, seconds)
        made = json.dumps(answer(json.loads(line)))
        signal.setitimer(signal.ITIMER_PROF, 0)
        sys.stdout.write(made + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
