"""Rate limits: excess requests of a project or caller are refused with a retry time; the rest are served."""

from __future__ import annotations

import pytest

from api.middleware.rate_limits import MAX_BUCKETS, TokenBuckets
from tests.integration.api_world import World, root, world

__all__ = ["world"]


def test_a_bucket_holds_a_burst_and_fills_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    buckets = TokenBuckets(rate=2.0, burst=3.0)
    assert [buckets.take("a") for _ in range(4)] == [0.0, 0.0, 0.0, 0.5]
    assert buckets.take("b") == 0.0  # another caller
    now[0] += 0.5
    assert [buckets.take("a"), buckets.take("a")] == [0.0, 0.5]
    now[0] += 60
    assert [buckets.take("a") for _ in range(4)].count(0.0) == 3  # not more than a burst


def test_buckets_are_no_more_than_so_many() -> None:
    buckets = TokenBuckets(rate=1.0, burst=1.0)
    for number in range(MAX_BUCKETS + 10):
        buckets.take(str(number))
    assert len(buckets._levels) == MAX_BUCKETS


def test_a_project_beyond_its_rate_limit_gets_a_retry_time_and_other_projects_are_served(
    world: World,
) -> None:
    api = world.client(request_rate_per_project=0.1, request_burst_seconds=20)
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


def test_a_caller_is_counted_before_authentication(world: World) -> None:
    api = world.client(auth="token", request_rate_per_caller=0.1, request_burst_seconds=20)
    place = f"/v1{root(world.project())}/stacks"
    forged, other = {"X-Auth-Token": "forged"}, {"X-Auth-Token": "another"}
    assert [api.http.get(place, headers=forged).status_code for _ in range(3)] == [401, 401, 429]
    assert api.http.get(place, headers=other).status_code == 401
    assert [api.http.get(place).status_code for _ in range(3)] == [401, 401, 429]  # by the address
    assert api.http.get("/healthcheck").status_code == 200  # never refused


def test_without_a_limit_there_is_none(world: World) -> None:
    api, project = world.client(), world.project()
    assert {api.http.get(f"/v1{root(project)}/stacks").status_code for _ in range(50)} == {200}
