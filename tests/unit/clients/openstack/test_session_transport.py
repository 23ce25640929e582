"""Requests to a cloud over real sockets: tokens, endpoints, deadlines, lost answers."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from orchestrator.clients.openstack.cloud import OpenStack
from orchestrator.clients.openstack.session import endpoints
from orchestrator.errors import (
    ProviderBusy,
    ProviderError,
    ProviderSilent,
    ProviderUnreachable,
)
from tests.patience import took_at_most
from tests.unit.clients.openstack.fake_cloud import FakeCloud, fake_cloud

TOKENS = "/identity/v3/auth/tokens"
THREADS = 16


@pytest.fixture
def fake() -> Iterator[FakeCloud]:
    with fake_cloud() as running:
        yield running


def ask(cloud: OpenStack, path: str = "/x") -> object:
    try:
        return cloud.compute.get(path)
    except ProviderError as error:
        return error


def together(cloud: OpenStack) -> list[object]:
    """Return the results of simultaneous requests of many threads."""
    with ThreadPoolExecutor(THREADS) as threads:
        return list(threads.map(lambda _: ask(cloud), range(THREADS)))


def test_threads_share_a_token_and_the_versions_of_a_service(fake: FakeCloud) -> None:
    cloud = OpenStack(fake.cloud())
    assert together(cloud) == [{"path": "/compute/v2.1/x"}] * THREADS
    assert fake.count("POST", TOKENS) == 1
    assert fake.count("GET", "/compute/v2.1") == 1
    assert cloud.compute.newest("2.95", "2.90") == "2.90"
    together(OpenStack(fake.cloud()))  # another credential
    assert fake.count("POST", TOKENS) == 2
    assert fake.count("GET", "/compute/v2.1") == 1


def test_the_headers_name_us_and_the_microversion(fake: FakeCloud) -> None:
    OpenStack(fake.cloud()).compute.post("/servers", {"a": 1}, microversion="2.52", headers={"X-Own": "1"})
    agents = {headers["user-agent"] for _, path, headers in fake.requests if "compute" in path}
    assert agents == {"stack-orchestrator"}
    _, _, headers = fake.requests[-1]
    assert headers["openstack-api-version"] == "compute 2.52"
    assert (headers["x-own"], headers["content-type"]) == ("1", "application/json")


def test_a_refused_token_is_renewed_once_for_all_threads(fake: FakeCloud) -> None:
    cloud = OpenStack(fake.cloud())
    ask(cloud)
    fake.refused = {"token1"}
    assert together(cloud) == [{"path": "/compute/v2.1/x"}] * THREADS
    assert fake.count("POST", TOKENS) == 2


def test_a_new_token_that_is_refused_ends_the_operation(fake: FakeCloud) -> None:
    cloud = OpenStack(fake.cloud())
    fake.refused = {f"token{number}" for number in range(10)}
    error = ask(cloud)
    assert isinstance(error, ProviderError)
    assert (error.kind, fake.count("POST", TOKENS)) == ("Unauthorized", 2)


def test_revoked_credentials_are_no_outage(fake: FakeCloud) -> None:
    cloud = OpenStack(fake.cloud())
    ask(cloud)
    fake.refused = {"token1"}
    fake.before = lambda _, path: 401 if path == TOKENS else None
    error = ask(cloud)
    assert isinstance(error, ProviderError)
    assert not isinstance(error, ProviderBusy)
    assert error.kind == "AuthorizationFailure"


def test_a_silent_keystone_costs_all_threads_one_deadline(fake: FakeCloud) -> None:
    release = threading.Event()
    fake.before = lambda _, path: release.wait(20) and None if path == TOKENS else None
    begun = time.monotonic()
    results = together(OpenStack(fake.cloud(), deadline_seconds=1.0))
    assert took_at_most(begun, 8)
    release.set()
    assert all(isinstance(error, ProviderUnreachable) for error in results)
    assert "Keystone" in str(results[0])


def test_a_failing_keystone_means_that_nothing_was_sent(fake: FakeCloud) -> None:
    fake.before = lambda _, path: 503 if path == TOKENS else None
    error = ask(OpenStack(fake.cloud()))
    assert isinstance(error, ProviderBusy)
    assert not isinstance(error, ProviderSilent)


@pytest.mark.parametrize("lost", ["silence", "a closed connection"])
def test_an_answer_that_does_not_arrive_leaves_the_outcome_open(fake: FakeCloud, lost: str) -> None:
    cloud = OpenStack(fake.cloud(), deadline_seconds=1.5)
    ask(cloud)
    release = threading.Event()
    if lost == "silence":
        fake.before = lambda method, _: release.wait(20) and None if method == "POST" else None
    else:
        fake.after = lambda method, _: method != "POST"
    begun = time.monotonic()
    with pytest.raises(ProviderSilent, match="nova did not answer"):
        cloud.compute.post("/servers", {})
    assert took_at_most(begun, 6)
    release.set()


def test_a_refused_connection_means_that_nothing_was_sent() -> None:
    with fake_cloud() as fake:
        fake.service_url = "http://127.0.0.1:1"  # the port of no service
        error = ask(OpenStack(fake.cloud()))
        assert isinstance(error, ProviderUnreachable)
        assert str(error).startswith("nova: ")
        fake.url = fake.service_url
        error = ask(OpenStack(fake.cloud()))
        assert isinstance(error, ProviderUnreachable)
        assert str(error).startswith("Keystone: ")


def test_a_create_without_a_connection_is_not_admitted() -> None:
    with fake_cloud() as fake:
        fake.service_url = "http://127.0.0.1:1"  # the port of no service
        for place in ("nova: ", "Keystone: "):
            with pytest.raises(ProviderUnreachable, match=place), OpenStack(fake.cloud()).reserved("nova"):
                raise AssertionError("admitted")
            fake.url = fake.service_url


def test_an_admitted_create_is_sent(fake: FakeCloud) -> None:
    cloud = OpenStack(fake.cloud())
    with cloud.reserved("nova"):
        assert cloud.compute.post("/servers", {}) == {"path": "/compute/v2.1/servers"}


def test_a_service_that_is_not_in_the_catalog_is_an_error(fake: FakeCloud) -> None:
    with pytest.raises(ProviderError, match="network service in RegionOne region not found") as caught:
        OpenStack(fake.cloud()).network.get("/x")
    assert caught.value.kind == "EndpointNotFound"
    with pytest.raises(ProviderError, match="compute service in Elsewhere region not found"):
        OpenStack(fake.cloud(), region="Elsewhere").compute.get("/x")


def test_the_catalog_of_a_new_token_applies(fake: FakeCloud) -> None:
    cloud, moved = OpenStack(fake.cloud()), "/compute2/compute/v2.1"
    ask(cloud)
    fake.service_url = f"{fake.url}/compute2"
    ask(cloud)
    assert fake.count("GET", moved) == 0
    fake.refused = {"token1"}
    ask(cloud)  # renews the token
    assert ask(cloud) == {"path": "/compute/v2.1/x"}
    assert fake.count("GET", moved) == 1


def test_microversions_that_could_not_be_read_are_read_again(
    fake: FakeCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoints, "UNKNOWN_SECONDS", 0.0)
    fake.before = lambda _, path: 503 if path.startswith("/compute") else None
    cloud = OpenStack(fake.cloud())
    assert not cloud.compute.supports("2.1")
    fake.before = lambda _method, _path: None
    assert cloud.compute.supports("2.1")


def test_an_upload_in_pieces_is_sent_completely(fake: FakeCloud) -> None:
    cloud = OpenStack(fake.cloud())
    cloud.compute.upload("/file", b"12345")
    assert fake.requests[-1][2]["content-length"] == "5"
