"""Floods of requests: the rates of projects are limited by default, and set for single projects."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from api.limits import rate_limits
from api.streaming.hub import EventHub, Scope
from orchestrator.cli.main import main
from orchestrator.config import Settings
from orchestrator.operations.quotas import limits as quotas
from orchestrator.operations.quotas.limits import CachedQuotas
from orchestrator.rate_errors import TooManyStreams
from orchestrator.store.access.quotas import set_maximum
from tests.integration.api_world import World, root, world

__all__ = ["world"]  # fixtures


def allow(world: World, project: str, name: str, maximum: int) -> None:
    with world.database.connect() as db:
        set_maximum(db, project, name, maximum)


def test_the_rate_of_a_project_is_limited_by_default(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limits, "time", SimpleNamespace(monotonic=lambda: 0.0))
    api, project = world.client(request_burst_seconds=0.1), world.project()
    answers = [api.http.get(f"/v1{root(project)}/stacks") for _ in range(31)]
    assert [answer.status_code for answer in answers] == [200] * 30 + [429]
    assert int(answers[-1].headers["Retry-After"]) == 1
    assert api.http.get(f"/v1{root(world.project())}/stacks").status_code == 200


def test_a_project_can_have_another_rate(world: World) -> None:
    api, slow, fast = world.client(request_burst_seconds=2), world.project(), world.project()
    allow(world, slow, "requests_per_second", 1)
    allow(world, fast, "requests_per_second", -1)
    assert [api.http.get(f"/v1{root(slow)}/stacks").status_code for _ in range(3)] == [200, 200, 429]
    assert {api.http.get(f"/v1{root(fast)}/stacks").status_code for _ in range(700)} == {200}


def test_a_changed_rate_takes_effect_within_seconds(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    now, project = [1_000.0], world.project()
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    limits = CachedQuotas(world.database, Settings())
    assert limits.limit(project, "requests_per_second") == Settings().quotas["requests_per_second"]
    allow(world, project, "requests_per_second", 7)
    now[0] += quotas.CACHED_SECONDS + 1
    assert limits.limit(project, "requests_per_second") == 7


def test_limits_of_a_bounded_number_of_projects_are_kept(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quotas, "MAX_CACHED", 3)
    limits = CachedQuotas(world.database, Settings())
    for number in range(5):
        limits.limit(str(number), "requests_per_second")
    assert len(limits._read) == 3


def test_a_project_can_have_another_number_of_event_streams(world: World) -> None:
    hub, one, other = EventHub(world.database, 4), world.project(), world.project()
    limits = CachedQuotas(world.database, Settings(max_event_streams=4))
    allow(world, other, "event_streams", 1)

    def open_stream(project: str) -> None:
        hub.join(Scope(project, 0), int(limits.limit(project, "event_streams")))

    open_stream(one)
    open_stream(one)
    with pytest.raises(TooManyStreams, match="2 streams of events of the project are open here"):
        open_stream(one)
    open_stream(other)
    with pytest.raises(TooManyStreams, match="1 streams of events of the project are open here"):
        open_stream(other)


@pytest.mark.parametrize("name", sorted(quotas.POSITIVE))
def test_a_rate_of_zero_is_refused(name: str) -> None:
    refused = CliRunner().invoke(main, ["quota", "set", "--project", "p", f"{name}=0"])
    assert refused.exit_code == 1
    assert f"the maximum of {name} is a positive number" in refused.output
