"""Observations that share a list."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from orchestrator.clients.openstack.cloud import OpenStack
from orchestrator.clients.openstack.session import shared_lists
from orchestrator.clients.openstack.session.shared_lists import NotListedYet, SharedLists
from orchestrator.clients.openstack.transport import Answer, Request
from orchestrator.clients.provider_calls import ListBatch, NeedsOwnRequest, ProviderCalls
from orchestrator.errors import ProviderBusy
from orchestrator.testing.scripted_cloud import ScriptedCloud

THREADS = 16


class Nova(ScriptedCloud):
    """Nova with servers; requests take `seconds`."""

    def __init__(self, servers: int = 50) -> None:
        super().__init__()
        self.lists, self.project_id, self.seconds = SharedLists(), "p", 0.02
        self.servers = {f"s{number}": {"id": f"s{number}", "status": "BUILD"} for number in range(servers)}
        self.answers("GET", "/servers/detail.*", lambda _: {"servers": list(self.servers.values())})
        self.answers("GET", r"/servers\?.*", lambda _: {"servers": [{"id": id_} for id_ in self.servers]})
        self.answers("GET", "/servers/s.*", self._one)
        self.answers("POST", "/servers/.*/action", {})

    def _one(self, request: Request) -> Any:
        server = self.servers.get(request.path.rpartition("/")[2])
        return Answer(404) if server is None else {"server": server}

    def send(self, request: Request, seconds: float) -> Answer:
        answer = super().send(request, seconds)
        time.sleep(self.seconds)
        return answer

    def counts(self) -> tuple[int, int]:
        """Return the number of requests for lists and for single servers."""
        lists = len(self.sent("GET", r"/servers(/detail)?\?.*"))
        return lists, len(self.sent("GET")) - lists


def observe(cloud: OpenStack, id_: str) -> Any:
    return cloud.compute.observed("/servers", "server", id_, listing="/servers/detail")


def observe_all(cloud: OpenStack, ids: list[str]) -> list[Any]:
    with ThreadPoolExecutor(THREADS) as threads:
        return list(threads.map(lambda id_: observe(cloud, id_), ids))


def test_a_single_observation_is_a_request_for_the_object() -> None:
    nova = Nova()
    for _ in range(5):
        assert observe(OpenStack(nova.cloud, lag_seconds=2.0), "s1")["id"] == "s1"
    assert nova.counts() == (0, 5)


def test_few_objects_that_are_observed_often_need_no_list() -> None:
    nova = Nova()
    cloud = OpenStack(nova.cloud)
    for _ in range(4):
        assert [observe(cloud, id_)["id"] for id_ in ("s0", "s1")] == ["s0", "s1"]
    assert nova.counts() == (0, 8)


def test_observations_of_many_objects_share_a_list() -> None:
    nova = Nova()
    cloud = OpenStack(nova.cloud, lag_seconds=2.0)
    seen = observe_all(cloud, list(nova.servers))
    assert [server["id"] for server in seen] == list(nova.servers)
    lists, single = nova.counts()
    assert lists <= 2
    assert single <= THREADS


def test_the_absence_of_objects_that_are_being_deleted_is_read_from_a_list_of_a_moment_ago() -> None:
    nova = Nova()
    ids = list(nova.servers)
    cloud = OpenStack(nova.cloud, lag_seconds=2.0, deleting=True)
    observe_all(cloud, ids)
    lists, single = nova.counts()
    nova.lists.note_change("/servers/s0")  # which needs a later list
    nova.servers.clear()
    assert [observe(cloud, id_) for id_ in ids] == [None] * 50
    assert nova.counts()[0] <= lists + 2
    assert nova.counts()[1] <= single + shared_lists.MIN_OBJECTS


def test_the_list_of_a_slow_service_is_used_for_longer() -> None:
    nova = Nova()
    cloud = OpenStack(nova.cloud, lag_seconds=0.01, max_lag_seconds=60.0)
    nova.seconds = 0.3
    observe_all(cloud, list(nova.servers))
    before = nova.counts()[0]
    observe_all(cloud, list(nova.servers))
    assert nova.counts()[0] == before


def test_an_operation_that_began_a_moment_ago_needs_a_list_of_its_own_from_a_slow_service_too() -> None:
    nova = Nova()
    nova.seconds = 0.3
    observe_all(OpenStack(nova.cloud), list(nova.servers))
    before = nova.counts()[0]
    observe_all(OpenStack(nova.cloud, max_lag_seconds=0.05), list(nova.servers))
    assert nova.counts()[0] > before


def test_a_young_object_causes_no_list() -> None:
    nova = Nova()
    cloud = OpenStack(nova.cloud, lag_seconds=5.0)
    observe_all(cloud, list(nova.servers))
    before = nova.counts()
    nova.servers["s-new"] = {"id": "s-new", "status": "BUILD"}
    with pytest.raises(NotListedYet):
        cloud.compute.server("s-new", young=True)
    assert nova.counts() == before
    assert observe(cloud, "s-new") == {"id": "s-new", "status": "BUILD"}
    assert cloud.compute.server("s-new", young=True) == {"id": "s-new", "status": "BUILD"}


def test_a_young_object_of_few_gets_a_request_of_its_own() -> None:
    nova = Nova()
    cloud = OpenStack(nova.cloud, lag_seconds=5.0)
    assert cloud.compute.server("s1", young=True) == {"id": "s1", "status": "BUILD"}
    assert nova.counts() == (0, 1)


def test_a_list_that_must_be_current_begins_after_the_observation() -> None:
    nova = Nova()
    strict = OpenStack(nova.cloud)
    observe_all(strict, list(nova.servers))
    for id_ in ("s1", "s2", "s3"):
        nova.servers[id_] = {"id": id_, "status": "ACTIVE"}
        assert observe(strict, id_)["status"] == "ACTIVE"


def test_simultaneous_current_observations_share_lists() -> None:
    nova = Nova()
    observe_all(OpenStack(nova.cloud), list(nova.servers) * 4)
    lists, single = nova.counts()
    assert lists + single < 100


def test_a_change_of_an_object_makes_earlier_lists_useless_for_it() -> None:
    nova = Nova()
    cloud = OpenStack(nova.cloud, lag_seconds=60.0)
    observe_all(cloud, list(nova.servers))
    for id_ in ("s1", "s2"):
        nova.servers[id_] = {"id": id_, "status": "ACTIVE"}
    cloud.compute.post("/servers/s1/action", {})
    assert [observe(cloud, id_)["status"] for id_ in ("s2", "s1")] == ["BUILD", "ACTIVE"]


def test_an_object_that_leaves_the_list_is_absent() -> None:
    nova = Nova()
    cloud = OpenStack(nova.cloud, lag_seconds=2.0)
    observe_all(cloud, list(nova.servers))
    gone = list(nova.servers)[:30]
    for id_ in gone:
        del nova.servers[id_]
    before = nova.counts()
    time.sleep(shared_lists.WINDOW_SECONDS)
    assert observe_all(cloud, gone) == [None] * 30
    _, single = nova.counts()
    assert single - before[1] <= THREADS
    assert {request.microversion for request in nova.sent("GET", r"/servers\?.*")} == {"2.69"}


def test_nova_without_complete_lists_is_asked_about_absent_servers() -> None:
    nova = Nova()
    nova.microversions = ("2.1", "2.60")
    cloud = OpenStack(nova.cloud, lag_seconds=2.0)
    observe_all(cloud, list(nova.servers))
    hidden = nova.servers.pop("s1")  # its cell does not answer
    nova.answers("GET", "/servers/s1", {"server": hidden})
    time.sleep(shared_lists.WINDOW_SECONDS)
    assert all(observe_all(cloud, [f"s{number}" for number in range(20)]))


def test_an_object_that_was_never_listed_is_asked_for() -> None:
    nova = Nova()
    nova.answers("GET", "/servers/other", {"server": {"id": "other"}})
    cloud = OpenStack(nova.cloud, lag_seconds=2.0)
    observe_all(cloud, list(nova.servers))
    assert observe(cloud, "other") == {"id": "other"}


def test_a_list_of_many_pages_is_not_read_for_a_few_objects() -> None:
    nova = Nova(servers=2_000)
    cloud = OpenStack(nova.cloud, lag_seconds=2.0)
    observe_all(cloud, list(nova.servers)[:40])
    time.sleep(shared_lists.WINDOW_SECONDS)
    before = nova.counts()
    for id_ in ("s1", "s2", "s3", "s4"):
        observe(cloud, id_)
    assert nova.counts() == (before[0], before[1] + 4)


def crowded(reply: Callable[[Request], Any]) -> tuple[Nova, OpenStack]:
    nova = Nova()
    nova.answers("GET", "/servers/detail.*", reply)
    return nova, OpenStack(nova.cloud)


def test_a_list_that_the_caller_must_not_read_is_replaced_by_single_requests() -> None:
    nova, cloud = crowded(lambda _: Answer(403, {}, b"{}"))
    assert all(observe_all(cloud, list(nova.servers)))


def test_all_observers_of_a_failed_list_report_the_failure() -> None:
    nova, cloud = crowded(lambda _: ProviderBusy("busy"))
    errors = []

    def attempt(id_: str) -> None:
        try:
            observe(cloud, id_)
        except ProviderBusy as error:
            errors.append(error)

    with ThreadPoolExecutor(THREADS) as threads:
        list(threads.map(attempt, nova.servers))
    assert len(errors) > 20


def test_an_observer_waits_no_longer_than_its_deadline() -> None:
    release = threading.Event()
    nova, cloud = crowded(lambda _: release.wait(20) and {"servers": []})
    cloud.deadline_seconds = 0.5
    threads = ThreadPoolExecutor(4)
    for id_ in ("s1", "s2", "s3", "s4"):
        threads.submit(observe, cloud, id_)
    while not nova.sent("GET", "/servers/detail.*"):
        time.sleep(0.01)
    with pytest.raises(ProviderBusy, match="takes too long"):
        observe(cloud, "s5")
    release.set()
    threads.shutdown()


def test_neutrons_lists_are_those_of_the_project() -> None:
    cloud = Nova()
    cloud.answers("GET", "/ports/.*", lambda request: {"port": {"id": request.path[7:]}})
    cloud.answers("GET", r"/ports\?.*", {"ports": [{"id": f"p{number}"} for number in range(9)]})
    network = OpenStack(cloud.cloud, lag_seconds=2.0).network
    for number in range(9):
        assert network.observed("/ports", "port", f"p{number}") == {"id": f"p{number}"}
    assert [request.target for request in cloud.sent("GET", r"/ports\?.*")] == [
        "/ports?limit=500&project_id=p"
    ]


def test_lists_of_keystone_are_not_shared() -> None:
    cloud = Nova()
    cloud.answers("GET", "/users/.*", lambda request: {"user": {"id": request.path[7:]}})
    identity = OpenStack(cloud.cloud, lag_seconds=2.0).identity
    for number in range(9):
        identity.observed("/users", "user", str(number))
    assert len(cloud.requests) == 9


def test_objects_that_are_observed_together_cost_a_single_list() -> None:
    nova = Nova()
    ids = list(nova.servers)
    cloud = OpenStack(nova.cloud, calls=ProviderCalls(ListBatch(len(ids), time.monotonic())))
    assert [observe(cloud, id_)["id"] for id_ in ids] == ids
    assert nova.counts() == (1, 0)


def test_objects_that_are_observed_together_are_requested_no_other_way() -> None:
    nova = Nova()
    calls = ProviderCalls(ListBatch(50, time.monotonic()))
    cloud = OpenStack(nova.cloud, calls=calls)
    with pytest.raises(NeedsOwnRequest):
        observe(cloud, "unknown")
    assert calls.needs_request
    with pytest.raises(NeedsOwnRequest):
        cloud.compute.act("s1", "suspend")
    assert nova.counts() == (1, 0)
    assert nova.sent("POST") == []
    calls.batch = None
    cloud.compute.act("s1", "suspend")
    assert len(nova.sent("POST")) == 1
