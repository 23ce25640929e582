"""The policy, the pause and the acceptances that apply to a resource."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.engine.observation.policies import (
    MODES,
    Place,
    Rule,
    accepts,
    effective,
    in_force_until,
    matches,
    matches_everything,
    paused,
)

NOW = dt.datetime(2026, 1, 14, 12, tzinfo=dt.UTC)
HOUR, DAY = dt.timedelta(hours=1), dt.timedelta(days=1)
SERVER = Place("OS::Nova::Server", ((3, "server"), (2, "0.server"), (1, "group.0.server")))

# From the least to the most specific, for SERVER.
NAMING = [
    Rule(1, "policy", mode="off"),
    Rule(2, "policy", 1, mode="off"),
    Rule(3, "policy", 2, mode="off"),
    Rule(4, "policy", 3, mode="off"),
    Rule(5, "policy", type="OS::Nova::Server", mode="off"),
    Rule(6, "policy", 1, type="OS::Nova::Server", mode="off"),
    Rule(7, "policy", 3, type="OS::Nova::Server", mode="off"),
    Rule(8, "policy", 1, resource="group", mode="off"),
    Rule(9, "policy", 1, resource="group.0.server", mode="off"),
]
OTHERS = [
    Rule(20, "policy", 9, mode="heal"),
    Rule(21, "policy", type="OS::Cinder::Volume", mode="heal"),
    Rule(22, "policy", 1, resource="group.1", mode="heal"),
    Rule(23, "policy", 1, resource="gro", mode="heal"),
    Rule(24, "pause", 1, ends_at=NOW + HOUR),
]


def test_without_a_policy_differences_are_reported() -> None:
    assert effective(OTHERS, SERVER) == ("report", None)


@given(st.sets(st.sampled_from(range(len(NAMING))), min_size=1), st.sampled_from(MODES), st.randoms())
def test_the_most_specific_policy_applies(chosen: set[int], mode: str, random) -> None:
    best = NAMING[max(chosen)]
    rules = [NAMING[i] for i in chosen if i != max(chosen)] + OTHERS
    rules.append(Rule(best.id, "policy", best.stack_id, best.type, best.resource, mode))
    random.shuffle(rules)
    found = effective(rules, SERVER)
    assert (found.mode, found.rule and found.rule.id) == (mode, best.id)


def test_a_pause_is_in_force_from_its_start_to_its_end() -> None:
    pause = Rule(1, "pause", 1, starts_at=NOW, ends_at=NOW + HOUR)
    times = (NOW - HOUR, NOW, NOW + HOUR / 2, NOW + HOUR)
    assert [paused([pause], SERVER, now) for now in times] == [None, pause, pause, None]


def test_the_pause_that_ends_last_is_named() -> None:
    short, long = (Rule(n, "pause", 1, starts_at=NOW, ends_at=NOW + n * HOUR) for n in (1, 2))
    other = Rule(3, "pause", 1, resource="other", starts_at=NOW, ends_at=NOW + DAY)
    assert paused([long, short, other], SERVER, NOW) == long


@pytest.mark.parametrize(("repeats", "period"), [("daily", DAY), ("weekly", 7 * DAY)])
@given(st.integers(0, 1_000), st.integers(-30, 59))
def test_a_window_repeats(repeats, period: dt.timedelta, count: int, minutes: int) -> None:
    window = Rule(1, "pause", starts_at=NOW, ends_at=NOW + HOUR, repeats=repeats)
    now = NOW + count * period + minutes * HOUR / 60
    expected = NOW + count * period + HOUR if minutes >= 0 else None
    assert in_force_until(window, now) == expected


@pytest.mark.parametrize(
    ("pattern", "path", "result"),
    [
        ("web.properties.metadata.*", "web.properties.metadata.role", True),
        ("web.properties.metadata", "web.properties.metadata.role", True),
        ("web.properties.meta", "web.properties.metadata", False),
        ("web.properties.metadata.*", "web2.properties.metadata.role", False),
        ("*.properties.name", "group.0.server.properties.name", True),
        ("group.?.server.properties.*", "group.0.server.properties.name", True),
        ("group.?.server.properties.*", "group.10.server.properties.name", False),
        ("a+b[0].properties.x", "a+b[0].properties.x", True),
        ("a+b.properties.x", "aab.properties.x", False),
        ("******a.properties.x", "b" * 50_000, False),
    ],
)
def test_patterns(pattern: str, path: str, result: bool) -> None:
    assert matches(pattern, path) is result


@pytest.mark.parametrize("pattern", ["*", "**", "*.properties.*", "?*", "*.*", "*.properties.?*"])
def test_patterns_for_everything(pattern: str) -> None:
    assert matches_everything(pattern)
    assert not matches_everything(f"{pattern}a")


def test_a_difference_is_accepted_by_the_path_in_the_stack_of_the_rule() -> None:
    outer = Rule(1, "accept", 1, path="group.*.properties.metadata.*")
    inner = Rule(2, "accept", 3, path="server.properties.name", ends_at=NOW + HOUR)
    rules = [outer, inner]
    assert accepts(rules, SERVER, "metadata.role", NOW) == outer
    assert accepts(rules, SERVER, "name", NOW) == inner
    assert accepts(rules, SERVER, "name", NOW + HOUR) is None
    assert accepts(rules, SERVER, "flavor", NOW) is None
    assert accepts(rules, Place(SERVER.type, ((9, "server"),)), "name", NOW) is None
