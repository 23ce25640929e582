"""Results of look-ups that are kept for a short time."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from orchestrator.errors import ProviderBusy, ProviderError
from orchestrator.lookups.cache import Key, LookupCache
from orchestrator.lookups.kinds import LookupFault

KEY = Key("p", "r", "nova.flavor", "m1")


def returns(id_: str, calls: list[str]) -> Callable[[], str]:
    def find() -> str:
        calls.append(id_)
        return id_

    return find


def raises(error: Exception) -> Callable[[], str]:
    def find() -> str:
        raise error

    return find


def test_a_result_is_kept_for_a_time_by_project_region_kind_and_value() -> None:
    now, calls = [0.0], list[str]()
    cache = LookupCache(30.0, lambda: now[0])
    for _ in range(2):
        assert cache.get_or_find(KEY, returns("1", calls), 1.0) == "1"
    assert calls == ["1"]
    for field in Key._fields:
        assert cache.get(KEY._replace(**{field: "other"})) is None
    now[0] = 30.1
    assert cache.get(KEY) is None
    assert cache.get_or_find(KEY, returns("2", calls), 1.0) == "2"


@pytest.mark.parametrize("error", [LookupFault("none"), ProviderBusy("later")])
def test_a_fault_is_not_kept(error: Exception) -> None:
    cache = LookupCache()
    with pytest.raises(type(error)):
        cache.get_or_find(KEY, raises(error), 1.0)
    assert cache.get_or_find(KEY, returns("1", []), 1.0) == "1"


class Slow:
    """A look-up that waits for the test."""

    def __init__(self, error: Exception | None = None) -> None:
        self.begun, self.go_on, self.error = threading.Event(), threading.Event(), error

    def find(self) -> str:
        self.begun.set()
        assert self.go_on.wait(10)
        if self.error:
            raise self.error
        return "1"


def at_the_same_time(slow: Slow, second: Callable[[], str]) -> tuple[list[object], list[object]]:
    """Return the results of both look-ups, the second started during the first."""
    cache, results = LookupCache(), ([], [])  # type: tuple[list[object], list[object]]

    def run(into: list[object], find: Callable[[], str]) -> None:
        try:
            into.append(cache.get_or_find(KEY, find, 10.0))
        except Exception as error:
            into.append(error)

    threads = [threading.Thread(target=run, args=(results[0], slow.find))]
    threads[0].start()
    assert slow.begun.wait(10)
    threads.append(threading.Thread(target=run, args=(results[1], second)))
    threads[1].start()
    slow.go_on.set()
    for thread in threads:
        thread.join(10)
    return results


def test_equal_look_ups_at_the_same_time_are_one() -> None:
    calls: list[str] = []
    assert at_the_same_time(Slow(), returns("2", calls)) == (["1"], ["1"])
    assert calls == []


def test_a_look_up_that_another_credential_may_not_make_is_made_again() -> None:
    first, second = at_the_same_time(Slow(ProviderError("forbidden")), returns("2", []))
    assert isinstance(first[0], ProviderError)
    assert second == ["2"]


def test_a_look_up_of_another_thread_is_awaited_only_so_long() -> None:
    cache, slow = LookupCache(), Slow()
    thread = threading.Thread(target=cache.get_or_find, args=(KEY, slow.find, 10.0))
    thread.start()
    assert slow.begun.wait(10)
    with pytest.raises(ProviderBusy, match=r"a look-up of nova\.flavor takes longer than 0\.01 s"):
        cache.get_or_find(KEY, returns("2", []), 0.01)
    slow.go_on.set()
    thread.join(10)
