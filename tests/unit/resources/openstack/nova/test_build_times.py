"""The time of the first observation of a server in construction."""

from __future__ import annotations

import pytest

from orchestrator.resources.openstack.connection import LAG_SECONDS
from orchestrator.resources.openstack.nova.server import build_times, state
from orchestrator.resources.openstack.nova.server.build_times import (
    KEPT_SECONDS,
    MAX_SECONDS,
    MIN_BUILDS,
    BuildTimes,
    Kind,
)
from orchestrator.resources.openstack.nova.server.server_type import Server

SMALL, LARGE = Kind("RegionOne", "small", "i1"), Kind("RegionOne", "large", "i1")


def built(seconds):
    return {
        "created": "2026-01-01T00:00:10Z",
        "OS-SRV-USG:launched_at": f"2026-01-01T00:00:{10 + seconds}.500000",
    }


def times_of(*seconds, clock=lambda: 0.0):
    times = BuildTimes(clock)
    for duration in seconds:
        times.record(SMALL, built(duration))
    return times


def test_the_fastest_recent_build_of_a_kind_counts():
    times = times_of(4, 3, 9)
    assert times.fastest(SMALL) == 3.5
    assert times.fastest(LARGE) is None


def test_few_builds_are_no_rule():
    assert times_of(*[3] * (MIN_BUILDS - 1)).fastest(SMALL) is None


def test_long_builds_do_not_delay_the_first_observation_further():
    assert times_of(30, 30, 30).fastest(SMALL) == MAX_SECONDS


def test_old_builds_are_forgotten():
    now = [0.0]
    times = times_of(3, 3, 3, clock=lambda: now[0])
    now[0] = KEPT_SECONDS + 1
    assert times.fastest(SMALL) is None


def test_servers_without_times_are_ignored():
    times = BuildTimes()
    for _ in range(MIN_BUILDS):
        times.record(SMALL, {"created": "2026-01-01T00:00:10Z", "OS-SRV-USG:launched_at": None})
    assert times.fastest(SMALL) is None


@pytest.mark.parametrize(
    ("elapsed", "fastest", "pause"),
    [
        (0.0, None, 2.0),
        (0.0, 3.0, 3.0 + LAG_SECONDS),
        (1.0, 3.0, 2.0 + LAG_SECONDS),
        (6.0, 3.0, 2.0),
        (100.0, 3.0, 5.0),
    ],
)
def test_the_pause_ends_when_the_server_can_be_ready(elapsed, fastest, pause):
    assert state.build_pause(elapsed, fastest) == pause


def test_a_created_server_is_observed_when_the_recent_ones_were_ready(cloud, context_of, monkeypatch):
    monkeypatch.setattr(build_times, "RECENT", BuildTimes())
    properties, _ = Server().read_properties({"flavor": "small", "image": "i1", "user_data_format": "RAW"})
    cloud.answers("POST", "/servers", {"server": {"id": "s1"}}, status=202)
    active = {"id": "s1", "status": "ACTIVE", "flavor": {"id": "small"}, **built(3)}
    cloud.answers("GET", "/servers/s1", {"server": active})
    ctx = context_of(properties)
    assert Server().create(ctx, properties).observation.retry_after == state.BUILD_POLL_SECONDS
    for _ in range(MIN_BUILDS):
        assert Server().observe(ctx, "s1").ready
    assert Server().create(ctx, properties).observation.retry_after == 3.5 + LAG_SECONDS
