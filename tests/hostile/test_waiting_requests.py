"""Requests beyond the limit of concurrent requests wait for a short time instead of being refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from api import postponement
from api.limits.rate_limits import RateLimits
from api.middleware.in_flight import MAX_WAITING_OF_PARTY
from orchestrator.config import Settings
from orchestrator.rate_errors import TooManyConcurrentRequests
from orchestrator.security.caller import Caller
from orchestrator.security.encryption import new_key
from tests import constants
from tests.hostile.test_concurrent_requests import ALICE, BOB, Api
from tests.integration.served_api import served

TEMPLATE = {"heat_template_version": "2021-04-16", "resources": {"a": {"type": "OS::Heat::None"}}}


@pytest.fixture
def url(
    new_database: Callable[[], str], valkey_server: Any, broker_numbers: Iterator[int], tmp_path: Path
) -> Iterator[str]:
    """An API that handles one request of a project at a time."""
    settings = {
        "database_url": new_database(),
        "broker_url": valkey_server.url(next(broker_numbers)),
        "encryption_keys": new_key(),
        "max_concurrent_requests": "1",
    }
    with served(settings, tmp_path / "api.log", threads=4) as port:
        yield f"http://localhost:{port}"


def test_a_burst_of_a_project_is_served_one_after_another(url: str) -> None:
    def send(number: int) -> int:
        body = {"stack_name": f"s{number}", "template": TEMPLATE}
        with httpx.Client(base_url=f"{url}/v1/p", timeout=30) as client:
            statuses = {client.get("/stacks").status_code, client.get("/resource_types").status_code}
            return client.post("/stacks", json=body).status_code if statuses == {200} else max(statuses)

    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(send, range(32))) == {201}
    listed = httpx.get(f"{url}/v1/p/stacks").json()["stacks"]
    assert len(listed) == 32  # each create was carried out once


def postponed(api: Api, **environ: Any) -> postponement.Postponed:
    with postponement.handling(may_wait=True, counted=False), pytest.raises(postponement.Postponed) as raised:
        api.send(ALICE, may_wait=True, **environ)
    return raised.value


def test_a_request_waits_until_another_ends() -> None:
    api = Api(max_concurrent_requests=1)
    first = api.send(ALICE)
    waiting = postponed(api)
    assert not waiting.has_room()
    first.close()
    assert waiting.has_room()
    waiting.leave()
    api.send(ALICE).close()


def test_a_bounded_number_of_requests_wait() -> None:
    api = Api(max_concurrent_requests=1)
    _first = api.send(ALICE)
    waiting = [postponed(api) for _ in range(MAX_WAITING_OF_PARTY)]
    with postponement.handling(may_wait=True, counted=False), pytest.raises(TooManyConcurrentRequests):
        api.send(ALICE, may_wait=True)
    waiting[0].leave()
    postponed(api)


def test_requests_that_cannot_be_repeated_are_refused_at_once() -> None:
    api = Api(max_concurrent_requests=1)
    _first = api.send(ALICE)
    with postponement.handling(may_wait=True, counted=False):
        with pytest.raises(TooManyConcurrentRequests):
            api.send(ALICE)  # its body is read already
        with pytest.raises(TooManyConcurrentRequests):
            api.send(ALICE, may_wait=True, HTTP_EXPECT="100-continue")
    with postponement.handling(may_wait=False, counted=True), pytest.raises(TooManyConcurrentRequests):
        api.send(ALICE, may_wait=True)  # it has waited long enough


def test_a_request_that_has_waited_is_counted_once_for_its_rate() -> None:
    class Quotas:
        def limit(self, _project: str, _name: str) -> float:
            return 0.001

    constants.replace_for_test({"request_burst_seconds": 1})
    rates = RateLimits(Settings(), Quotas())  # type: ignore[arg-type]
    rates.take({}, Caller("p"))
    with postponement.handling(may_wait=True, counted=True):
        rates.take({}, Caller("p"))


def test_a_request_with_known_credentials_waits_before_its_authentication() -> None:
    api = Api(max_concurrent_requests=1)
    first = api.send(ALICE, HTTP_X_AUTH_TOKEN="alice's")
    with pytest.raises(TooManyConcurrentRequests):  # it cannot wait: its authentication decides
        api.send(ALICE, HTTP_X_AUTH_TOKEN="alice's")
    waiting = postponed(api, HTTP_X_AUTH_TOKEN="alice's", early=True)
    assert not waiting.counted  # for its rate
    api.send(BOB, "q", HTTP_X_AUTH_TOKEN="bob's").close()
    with pytest.raises(RuntimeError):
        api.send(ALICE, HTTP_X_AUTH_TOKEN="unknown", early=True)
    first.close()
    waiting.leave()
    api.send(ALICE, HTTP_X_AUTH_TOKEN="alice's").close()


def test_credentials_that_belong_to_another_project_now_are_counted_for_it() -> None:
    api = Api(max_concurrent_requests=1)
    api.send(ALICE, HTTP_X_AUTH_TOKEN="moved").close()
    _moved = api.send(BOB, "q", HTTP_X_AUTH_TOKEN="moved")
    api.send(ALICE).close()
    assert not postponed(api, HTTP_X_AUTH_TOKEN="moved").has_room()


def test_signals_do_not_wait_for_other_requests_of_their_credentials() -> None:
    api = Api(max_concurrent_requests=1)
    api.send(ALICE, HTTP_X_AUTH_TOKEN="alice's").close()
    _other = api.send(ALICE)
    with postponement.handling(may_wait=True, counted=False), pytest.raises(RuntimeError):
        api.send(
            ALICE,
            "q",
            HTTP_X_AUTH_TOKEN="alice's",
            PATH_INFO="/v1/p/stacks/s/1/resources/h/signal",
            early=True,
        )


@pytest.mark.parametrize("path", ["/healthcheck", "/livez", "/readyz", "/metrics"])
def test_health_checks_with_credentials_wait_for_no_request(path: str) -> None:
    api = Api(max_concurrent_requests=1)
    _first = api.send(ALICE, HTTP_X_AUTH_TOKEN="alice's")
    with postponement.handling(may_wait=True, counted=False), pytest.raises(RuntimeError):
        api.send(ALICE, HTTP_X_AUTH_TOKEN="alice's", PATH_INFO=path, early=True)
