"""The real thing under `kill -9`: random requests over HTTP, and in the end the world is as asked for.

`make soak` does the same for an hour.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from qa.soak.run import Plan, run

QUICK = {"lease_seconds": 5.0, "re_enqueue_seconds": 2.0}


def test_the_final_state_matches_the_requests_after_kills(tmp_path: Path) -> None:
    plan = Plan(seconds=12.0, seed=int(time.time()), kill_seconds=2.0, stacks=4, size=8, constants=QUICK)
    report = run(tmp_path, plan)
    assert report.kills
    assert report.faults == [], str(report)


@pytest.mark.long
def test_two_minutes_of_kills_and_outages(tmp_path: Path) -> None:
    """No healthy object is destroyed, although services are unreachable and objects never become ready."""
    plan = Plan(seconds=120.0, seed=int(time.time()), outage_seconds=30.0, stuck=0.05)
    report = run(tmp_path, plan)
    print(report)
    assert report.outages
    assert report.faults == [], str(report)


@pytest.mark.long
def test_two_minutes_of_kills(tmp_path: Path) -> None:
    report = run(tmp_path, Plan(seconds=120.0, seed=int(time.time())))
    print(report)
    assert report.faults == [], str(report)
