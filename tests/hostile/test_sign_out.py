"""A copied cookie, and a copied token of the console, after its user has signed out: two API processes."""

from __future__ import annotations

import base64
import datetime as dt
from contextlib import suppress
from pathlib import Path

import pytest
from werkzeug.test import TestResponse

from api.streaming import session as streams
from orchestrator.clients.keystone.password_token import issue
from orchestrator.operations.maintenance.purge import Policy, count_purgeable, purge
from orchestrator.security import ended_sessions
from orchestrator.security.password_file import hash_password
from orchestrator.security.tokens import create_token
from orchestrator_console.session import COOKIE
from simulated_openstack.cloud import SimulatedCloud
from tests.integration.api_world import Client, World, project, world
from tests.integration.console.console_world import Browser

__all__ = ["project", "world"]  # fixtures

Pair = tuple[Browser, Browser]


def two(world: World, **settings: object) -> Pair:
    """Return browsers at two processes of an installation."""
    return Browser(world.client(**settings)), Browser(world.client(**settings))


def copied(source: Browser, target: Browser) -> str:
    """Copy the cookie of a session to another browser; return it."""
    cookie = source.http.get_cookie(COOKIE, path="/ui")
    assert cookie is not None
    target.http.set_cookie(COOKIE, cookie.value, path="/ui")
    return cookie.value


def is_signed_out(browser: Browser, place: str) -> bool:
    """Whether pages lead to the sign-in page, and forms have no effect."""
    page = browser.open(place, 303)
    form: TestResponse = browser.submit(f"{place}repairs", {"answer": "approve:all"}, 401)
    assert form.status_code == 401
    return "/ui/sign-in" in (page.location or "")


def test_a_copied_cookie_ends_with_the_session_in_every_process(world: World, project: str) -> None:
    user, thief = two(world, auth="token")
    user.submit("/ui/sign-in", {"token": create_token(world.database, project, "ada", roles=["member"])})
    place = f"/ui/{project.replace(' ', '%20')}/"
    copied(user, thief)
    thief.open(place)
    user.submit("/ui/sign-out", {})
    assert is_signed_out(thief, place)
    assert thief.open("/ui/", 303).location == "/ui/sign-in"


def test_other_texts_of_the_cookie_are_the_same_session(world: World, project: str) -> None:
    user, thief = two(world, auth="token")
    user.submit("/ui/sign-in", {"token": create_token(world.database, project, "ada", roles=["member"])})
    cookie = copied(user, thief)
    user.submit("/ui/sign-out", {})
    content = base64.urlsafe_b64decode(cookie)
    for text in (
        cookie.rstrip("="),
        cookie + "=",
        cookie[:9] + "!" + cookie[9:],
        cookie[:-4] + "~" + cookie[-4:],
    ):
        with suppress(ValueError):  # no session at all
            assert base64.urlsafe_b64decode(text) == content
        thief.http.set_cookie(COOKIE, text, path="/ui")
        assert is_signed_out(thief, f"/ui/{project.replace(' ', '%20')}/")


def test_a_further_session_of_the_same_user_goes_on(world: World, project: str) -> None:
    user, elsewhere = two(world, auth="token")
    token = create_token(world.database, project, "ada", roles=["member"])
    for browser in (user, elsewhere):
        browser.submit("/ui/sign-in", {"token": token})
    user.submit("/ui/sign-out", {})
    elsewhere.open(f"/ui/{project.replace(' ', '%20')}/")
    user.submit("/ui/sign-in", {"token": token})
    user.open(f"/ui/{project.replace(' ', '%20')}/")


def test_a_password_in_a_copied_cookie_ends_as_well(world: World, tmp_path: Path) -> None:
    path = tmp_path / "users.yaml"
    path.write_text(f"users:\n  ada: {{password: '{hash_password('secret')}', project: shop}}\n")
    user, thief = two(world, auth="basic", users_file=path)
    user.submit("/ui/sign-in", {"user": "ada", "password": "secret"})
    copied(user, thief)
    thief.open("/ui/shop/")
    user.submit("/ui/sign-out", {})
    assert is_signed_out(thief, "/ui/shop/")


def test_an_open_stream_ends_with_the_session(
    world: World, project: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "CHECK_SECONDS", 0.0)
    user, thief = two(world, auth="token")
    user.submit("/ui/sign-in", {"token": create_token(world.database, project, "ada", roles=["member"])})
    copied(user, thief)
    stack = world.stack(project, "it")
    stream = thief.open(f"/ui{stack.path}/events/stream")
    user.submit("/ui/sign-out", {})
    assert list(stream.response) is not None  # otherwise it would not end
    stream.close()


@pytest.mark.filterwarnings("ignore:'cgi' is deprecated:DeprecationWarning")
def test_a_cached_token_of_the_console_ends_in_every_process(
    world: World, simulated_cloud: SimulatedCloud
) -> None:
    password, url = simulated_cloud.password, simulated_cloud.auth_url
    service = {"keystone_auth_url": url, "keystone_username": "admin", "keystone_password": password}
    user, thief = two(world, auth="keystone", **service, keystone_project_name="demo")
    start = user.submit("/ui/sign-in", {"user": "demo", "password": password, "project": "demo"}).location
    assert start is not None
    token = str(world.cipher.open(copied(user, thief).encode())["value"])
    stacks = f"/v1/{start.split('/')[2]}/stacks"
    processes = [Client(browser.http, "") for browser in (user, thief)]
    for process in processes:
        process.get(stacks, headers={"X-Auth-Token": token})
    thief.open(start)
    user.submit("/ui/sign-out", {})
    for process in processes:
        process.get(stacks, 401, headers={"X-Auth-Token": token})
    assert is_signed_out(thief, start)
    given, _ = issue(
        url, None, user="demo", password=password, user_domain="Default", project="demo",
        project_domain="Default",
    ) or ("", 0)  # fmt: skip
    user.submit("/ui/sign-in", {"token": given})
    user.submit("/ui/sign-out", {})
    for process in processes:
        process.get(stacks, headers={"X-Auth-Token": given})  # other programs use it


def test_records_are_purged_when_the_session_would_have_ended(world: World) -> None:
    settings = world.client(auth="token").http.application.state.dependencies.settings
    now = dt.datetime.now(dt.UTC).timestamp()
    with world.database.connect() as db:
        db.execute("DELETE FROM ended_session")
        ended_sessions.end(world.database, b"a" * 32, None, now + 60)
        policy = Policy.of(settings)
        assert "ended sessions" not in count_purgeable(db, policy)
        db.execute("UPDATE ended_session SET ends_at = now() - interval '2 hours'")
        assert purge(db, policy)["ended sessions"] == 1
