"""Rate limits: excess requests of a project or caller are refused with a retry time; the rest are served."""

from __future__ import annotations

import pytest

from api.limits.rate_limits import MAX_BUCKETS, TokenBuckets
from orchestrator.security.tokens import create_token
from tests.integration.api_world import World, root, world

__all__ = ["world"]


def test_a_bucket_holds_a_burst_and_fills_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    buckets = TokenBuckets(burst_seconds=1.5)
    assert [buckets.take("a", 2.0) for _ in range(4)] == [0.0, 0.0, 0.0, 0.5]
    assert buckets.take("b", 2.0) == 0.0  # another caller
    now[0] += 0.5
    assert [buckets.take("a", 2.0), buckets.take("a", 2.0)] == [0.0, 0.5]
    now[0] += 60
    assert [buckets.take("a", 2.0) for _ in range(4)].count(0.0) == 3  # not more than a burst


def test_buckets_are_no_more_than_so_many() -> None:
    buckets = TokenBuckets(burst_seconds=1.0)
    for number in range(MAX_BUCKETS + 10):
        buckets.take(str(number), 1.0)
    assert len(buckets._levels) == MAX_BUCKETS


def test_a_project_beyond_its_rate_limit_gets_a_retry_time_and_other_projects_are_served(
    world: World,
) -> None:
    api = world.client(quotas={"requests_per_second": 0.1}, request_burst_seconds=20)
    item, other = world.project(), world.project()
    api.get(f"{root(item)}/stacks")
    api.get(f"{root(item)}/stacks")
    answer = api.http.get(f"/v1{root(item)}/stacks")
    assert answer.status_code == 429
    assert 1 <= int(answer.headers["Retry-After"]) <= 10
    body = answer.get_json()
    assert (body["code"], body["title"]) == (429, "Too Many Requests")
    assert body["error"]["type"] == "HTTPTooManyRequests"
    assert body["error"]["message"].startswith("The project may send 0.1 requests per second.")
    assert answer.headers["x-openstack-request-id"].startswith("req-")
    api.get(f"{root(other)}/stacks")


def test_a_caller_has_a_rate_in_all_projects_together(world: World) -> None:
    project = world.project()
    ada, bob = ({"X-Auth-Token": create_token(world.database, project, name)} for name in ("ada", "bob"))
    api = world.client(auth="token", request_rate_per_caller=0.1, request_burst_seconds=20)
    place = f"/v1{root(project)}/stacks"
    assert [api.http.get(place, headers=ada).status_code for _ in range(3)] == [200, 200, 429]
    refused = api.http.get(f"/v1{root(project)}/nowhere", headers=ada)
    assert refused.get_json()["error"]["message"].startswith("The caller may send 0.1 requests per second.")
    assert api.http.get(place, headers=bob).status_code == 200
    assert api.http.get("/healthcheck").status_code == 200  # never refused


@pytest.mark.parametrize("rate", [0, -1])
def test_without_a_limit_all_requests_are_served(world: World, rate: float) -> None:
    api, project = (
        world.client(quotas={"requests_per_second": rate}, request_burst_seconds=0.001),
        world.project(),
    )
    assert {api.http.get(f"/v1{root(project)}/stacks").status_code for _ in range(50)} == {200}
