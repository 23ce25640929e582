"""Guessed credentials: an address and a user name have limits, and neighbours with valid credentials none."""

from __future__ import annotations

import io
import threading
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from queue import Queue
from types import SimpleNamespace
from typing import Any

import pytest
from werkzeug.security import generate_password_hash
from werkzeug.test import TestResponse

from api.limits import failed_logins, rate_limits
from api.limits.failed_logins import Delays, FailedLogins
from orchestrator.config import Settings
from orchestrator.errors import Unauthenticated
from orchestrator.rate_errors import TooManyFailedLogins
from orchestrator.security import password_file
from orchestrator.security.tokens import create_token
from tests.integration.api_world import Client, World, root, world

__all__ = ["world"]  # fixtures

PASSWORD = "correct horse"


class Clock:
    """The time of all limits."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1_000.0
        for module in (failed_logins, rate_limits):
            monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: self.now))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def quick_hash(password: str) -> str:
    """Hash a password with few computations."""
    return generate_password_hash(password, method="pbkdf2:sha256:1")


@pytest.fixture
def basic(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Client:
    """An API with the users ada and bob."""
    monkeypatch.setattr(password_file, "hash_password", quick_hash)  # of passwords of unknown users
    users = tmp_path / "users.yaml"
    hashed = quick_hash(PASSWORD)
    users.write_text(
        f"users: {{ada: {{password: '{hashed}', project: shop}}, "
        f"bob: {{password: '{hashed}', project: shop}}}}"
    )
    return world.client(auth="basic", users_file=users)


def login(api: Client, name: str, password: str, address: str = "192.0.2.1") -> TestResponse:
    sent = {"Authorization": f"Basic {b64encode(f'{name}:{password}'.encode()).decode()}"}
    return api.http.get("/v1/shop/stacks", headers=sent, environ_overrides={"REMOTE_ADDR": address})


def statuses(api: Client, name: str, count: int, address: str = "192.0.2.1") -> list[int]:
    return [login(api, name, f"guess {number}", address).status_code for number in range(count)]


def test_guessed_passwords_are_slowed_down(basic: Client, clock: Clock) -> None:
    assert statuses(basic, "ada", 6) == [401] * 5 + [429]
    refused = login(basic, "ada", PASSWORD)  # not verified
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "1")
    body = refused.get_json()
    assert body["error"]["type"] == "HTTPTooManyRequests"
    assert body["error"]["message"].startswith("Too many requests of this client had no valid credentials.")
    delays = []
    for _ in range(8):
        clock.now += int(login(basic, "ada", "guess").headers["Retry-After"])
        assert login(basic, "ada", "guess").status_code == 401
        delays.append(int(login(basic, "ada", "guess").headers["Retry-After"]))
    assert delays == [2, 4, 8, 16, 32, 60, 60, 60]
    clock.now += 60
    assert login(basic, "ada", PASSWORD).status_code == 200
    assert statuses(basic, "ada", 5) == [401] * 5  # forgotten by the success


def test_failures_are_forgotten(basic: Client, clock: Clock) -> None:
    assert statuses(basic, "ada", 5) == [401] * 5
    clock.now += failed_logins.FORGET_SECONDS + 1
    assert statuses(basic, "ada", 5) == [401] * 5


def test_neighbours_behind_an_address_are_not_locked_out(basic: Client, clock: Clock) -> None:
    assert login(basic, "ada", PASSWORD).status_code == 200
    statuses(basic, "ada", 20)
    assert login(basic, "ada", "guess").status_code == 429
    assert login(basic, "ada", PASSWORD).status_code == 200  # verified before
    statuses(basic, "ada", 20)
    assert login(basic, "bob", PASSWORD).status_code == 200
    assert login(basic, "ada", PASSWORD, "192.0.2.2").status_code == 200


def test_an_address_has_a_rate_of_failures_for_all_names(basic: Client, clock: Clock) -> None:
    assert login(basic, "ada", PASSWORD).status_code == 200
    found = [statuses(basic, f"user {number}", 1)[0] for number in range(250)]
    assert found == [401] * 200 + [429] * 50
    assert login(basic, "bob", PASSWORD).status_code == 429  # an unknown password is not verified
    assert login(basic, "bob", PASSWORD, "192.0.2.2").status_code == 200
    assert login(basic, "ada", PASSWORD).status_code == 200
    clock.now += 1
    assert login(basic, "bob", PASSWORD).status_code == 200


def test_a_name_has_a_rate_of_failures_from_all_addresses(basic: Client, clock: Clock) -> None:
    assert login(basic, "ada", PASSWORD).status_code == 200
    found = [statuses(basic, "ada", 1, f"198.51.100.{number}")[0] for number in range(60)]
    assert found == [401] * 50 + [429] * 10
    assert login(basic, "ada", PASSWORD, "203.0.113.1").status_code == 200  # verified before


def test_refused_passwords_are_not_verified(
    basic: Client, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    verified = []

    def check(hashed: str, password: str) -> bool:
        verified.append(password)
        return False

    monkeypatch.setattr(password_file, "check_password_hash", check)
    assert statuses(basic, "ada", 50).count(429) == 45
    assert len(verified) == 5


def test_passwords_of_signals_are_limited_on_their_fast_path(
    basic: Client, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    verified = []
    monkeypatch.setattr(
        password_file, "check_password_hash", lambda _hashed, password: bool(verified.append(password))
    )
    place = "/v1/shop/stacks/s/00000000-0000-0000-0000-000000000000/resources/r/signal"
    sent = {"Authorization": f"Basic {b64encode(b'ada:guess').decode()}", "Content-Type": "application/json"}
    found = [basic.http.post(place, headers=sent, data="{}").status_code for _ in range(20)]
    assert found == [401] * 5 + [429] * 15
    assert len(verified) == 5


def test_forged_tokens_are_limited_and_valid_tokens_are_served(world: World, clock: Clock) -> None:
    api, project = world.client(auth="token"), world.project()
    place = f"/v1{root(project)}/stacks"
    token = create_token(world.database, project, "ada")
    forged = [
        api.http.get(place, headers={"X-Auth-Token": f"forged {number}"}).status_code for number in range(250)
    ]
    assert forged == [401] * 200 + [429] * 50
    assert api.http.get(place, headers={"X-Auth-Token": token}).status_code == 200
    assert [api.http.get(place).status_code for _ in range(250)] == [401] * 200 + [429] * 50
    assert api.http.get(place, headers={"X-Auth-Token": token}).status_code == 200
    assert api.http.get("/healthcheck").status_code == 200
    clock.now += 1
    assert [api.http.get(place).status_code for _ in range(21)] == [401] * 20 + [429]


def test_forged_signatures_are_limited(world: World, clock: Clock) -> None:
    api = world.client(auth="token")
    query = "Action=ListStacks&AWSAccessKeyId=unknown&SignatureVersion=2&SignatureMethod=HmacSHA256"
    found = [api.http.get(f"/v1/?{query}&Signature=x{number}") for number in range(210)]
    assert [answer.status_code for answer in found] == [403] * 200 + [400] * 10
    assert b"<Code>Throttling</Code>" in found[-1].data
    assert found[-1].headers["Retry-After"] == "1"
    arn = "arn:openstack:heat::p:stacks/s/00000000-0000-0000-0000-000000000000/resources/r"
    signals = [api.http.put(f"/v1/waitcondition/{arn}?{query}&Signature=x{number}") for number in range(210)]
    assert [answer.status_code for answer in signals] == [403] * 200 + [400] * 10


def test_clients_of_a_trusted_proxy_are_counted_separately(world: World, clock: Clock) -> None:
    api, place = world.client(auth="token", trusted_proxies=1), f"/v1{root(world.project())}/stacks"
    for number in range(250):
        api.http.get(place, headers={"X-Forwarded-For": f"198.51.100.{number}, 192.0.2.1"})
    assert api.http.get(place, headers={"X-Forwarded-For": "192.0.2.1"}).status_code == 429
    assert api.http.get(place, headers={"X-Forwarded-For": "192.0.2.2"}).status_code == 401


@pytest.mark.parametrize("rate", [0, -1])
def test_the_limits_can_be_turned_off(world: World, clock: Clock, rate: float) -> None:
    api = world.client(auth="token", unauthenticated_rate_per_address=rate, request_burst_seconds=1)
    place = f"/v1{root(world.project())}/stacks"
    assert {api.http.get(place, headers={"X-Auth-Token": "x"}).status_code for _ in range(50)} == {401}


def test_addresses_of_an_ipv6_network_count_together() -> None:
    assert failed_logins.network_of("2001:db8:1:2:3::1") == failed_logins.network_of("2001:db8:1:2:4::2")
    assert failed_logins.network_of("2001:db8:1:2:3::1") != failed_logins.network_of("2001:db8:1:3::1")
    assert failed_logins.network_of("::ffff:192.0.2.1") == failed_logins.network_of("192.0.2.1")
    assert failed_logins.network_of("fe80::1%eth0") == "fe80::/64"
    assert failed_logins.network_of("") == ""


def test_tables_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failed_logins, "MAX_ENTRIES", 3)
    delays, logins = Delays(), FailedLogins(Settings(auth="keystone"))
    for number in range(5):
        delays.add(number)
        environ: dict[str, Any] = {"HTTP_X_AUTH_TOKEN": str(number), "wsgi.input": io.BytesIO()}
        with logins.verifying(environ, logins.credentials(environ)):
            pass
    assert (len(delays._failures), len(logins._verified)) == (3, 3)


def test_tokens_of_keystone_are_verified_within_the_rate_of_an_address(clock: Clock) -> None:
    logins, asked = FailedLogins(Settings(auth="keystone")), []

    def verify(token: str, *, valid: bool = False) -> None:
        environ = {"HTTP_X_AUTH_TOKEN": token, "REMOTE_ADDR": "192.0.2.1"}
        with logins.verifying(environ, logins.credentials(environ)):
            asked.append(token)
            if not valid:
                raise Unauthenticated

    verify("known", valid=True)
    for number in range(250):
        with pytest.raises((Unauthenticated, failed_logins.TooManyFailedLogins)):
            verify(str(number))
    assert len(asked) == 201
    verify("known", valid=True)
    with pytest.raises(failed_logins.TooManyFailedLogins):
        verify("unknown", valid=True)
    verify("signal.unknown", valid=True)  # a resource credential: Keystone is not asked


def test_an_address_verifies_one_password_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failed_logins, "MAX_WAITING", 2)
    logins = FailedLogins(Settings(auth="basic"))
    verifying, over = Queue[str](), threading.Event()

    def verify(address: str, number: int) -> None:
        encoded = b64encode(f"ada:guess {number}".encode()).decode()
        environ = {"REMOTE_ADDR": address, "HTTP_AUTHORIZATION": f"Basic {encoded}"}
        with logins.verifying(environ, logins.credentials(environ)):
            verifying.put(address)
            assert over.wait(20)

    with ThreadPoolExecutor(8) as pool:
        try:
            attempts = [pool.submit(verify, "192.0.2.1", number) for number in range(4)]
            assert verifying.get(timeout=20) == "192.0.2.1"
            refused = next(as_completed(attempts, timeout=20))
            with pytest.raises(TooManyFailedLogins):
                refused.result()
            attempts.remove(refused)
            attempts.append(pool.submit(verify, "192.0.2.2", 0))
            assert verifying.get(timeout=20) == "192.0.2.2"
            assert verifying.empty()
        finally:
            over.set()
        assert [attempt.result(20) for attempt in attempts] == [None] * 4
