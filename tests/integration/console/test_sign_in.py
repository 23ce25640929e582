"""Sign-in at the console: the cookie, and requests of other sites."""

# ruff: noqa: F811 - fixtures are imported
from __future__ import annotations

import time
from pathlib import Path

import pytest

from orchestrator.clients.keystone.password_token import issue
from orchestrator.security.password_file import hash_password
from orchestrator.security.tokens import create_token
from orchestrator_console import session
from orchestrator_console.session import COOKIE, Session
from simulated_openstack.cloud import SimulatedCloud
from tests.integration.api_world import Client, World, api, project, world  # noqa: F401 - fixtures
from tests.integration.console.console_world import NAVIGATION, Browser, words

OF_DEMO = {"project": "demo", "project_domain": "Default"}
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)


@pytest.fixture
def token(world: World, project: str) -> str:
    return create_token(world.database, project, "ada", None, ["member"])


@pytest.fixture
def browser(world: World) -> Browser:
    """A browser that is not signed in, at a server with tokens."""
    return Browser(world.client(auth="token"))


def test_without_authentication_there_is_nothing_to_sign_in_to(world: World) -> None:
    browser = Browser(world.client())
    assert browser.open("/ui/", 303).location == "/ui/demo/"
    assert browser.open("/ui/sign-in", 303).location == "/ui/"
    page = browser.open("/ui/demo/")
    assert page.headers["Content-Security-Policy"] == CSP
    assert "Sign out" not in page.text


def test_a_token_begins_a_session_and_leads_back_to_the_requested_page(
    browser: Browser, world: World, project: str, token: str
) -> None:
    world.stack(project, "mine")
    wanted = f"/ui/{project}/stacks"
    form = browser.open(wanted, 303).location
    assert form == "/ui/sign-in?next=/ui/project%2520" + project.split()[1] + "/stacks"
    response = browser.submit(form, {"token": token, "next": f"/ui/{project.replace(' ', '%20')}/stacks"})
    assert response.location == f"/ui/{project.replace(' ', '%20')}/stacks"
    attributes = response.headers["Set-Cookie"].split("; ")
    assert {"HttpOnly", "SameSite=Strict", "Path=/ui"} <= set(attributes)
    assert token not in response.headers["Set-Cookie"]
    assert "mine" in browser.text(wanted)
    assert "ada" in browser.text(wanted)
    browser.submit("/ui/sign-out", {})
    browser.open(wanted, 303)


def test_the_cookie_is_secure_on_https(world: World, token: str) -> None:
    browser = Browser(world.client(auth="token"))
    headers = {"Origin": "https://localhost"}
    response = browser.submit("/ui/sign-in", {"token": token}, base_url="https://localhost", headers=headers)
    assert "Secure" in response.headers["Set-Cookie"].split("; ")


def test_the_cookie_opens_the_console_only(browser: Browser, project: str, token: str) -> None:
    browser.submit("/ui/sign-in", {"token": token})
    cookie = browser.http.get_cookie(COOKIE, path="/ui")
    assert cookie is not None
    headers = {"Cookie": f"{COOKIE}={cookie.value}"}
    assert browser.http.get(f"/v1/{project}/stacks", headers=headers).status_code == 401


@pytest.mark.parametrize("credentials", [{"token": "wrong"}, {"token": ""}, {"token": "ü"}, {"user": "ada"}])
def test_invalid_credentials_show_the_form_again(browser: Browser, credentials: dict[str, str]) -> None:
    response = browser.submit("/ui/sign-in", credentials, 401)
    assert "not valid" in response.text
    assert "Set-Cookie" not in response.headers


def test_pages_of_another_project_do_not_exist(browser: Browser, world: World, token: str) -> None:
    foreign = world.stack(world.project(), "theirs")
    browser.submit("/ui/sign-in", {"token": token})
    for path in (f"/ui/{foreign.project}/", f"/ui/{foreign.project}/stacks", f"/ui{foreign.path}/"):
        page = browser.text(path, 404)
        assert "theirs" not in words(page)


@pytest.mark.parametrize(
    "next_page", ["https://evil.example/", "//evil.example/", "/ui//evil.example", "/ui/\\evil", "/v1/"]
)
def test_only_pages_of_the_console_follow_a_sign_in(
    browser: Browser, token: str, project: str, next_page: str
) -> None:
    response = browser.submit("/ui/sign-in", {"token": token, "next": next_page})
    assert response.location == f"/ui/{project.replace(' ', '%20')}/"


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {},
    ],
)
def test_forms_of_other_origins_are_rejected(browser: Browser, token: str, headers: dict[str, str]) -> None:
    response = browser.http.post("/ui/sign-in", data={"token": token}, headers=headers)
    assert response.status_code == 403
    assert "Set-Cookie" not in response.headers


def test_a_form_without_fetch_metadata_needs_the_own_origin(browser: Browser, token: str) -> None:
    headers = {"Origin": "http://localhost"}
    assert browser.http.post("/ui/sign-in", data={"token": token}, headers=headers).status_code == 303


def test_an_ended_or_foreign_cookie_is_no_session(browser: Browser, world: World, token: str) -> None:
    ended = Session("token", token, time.time() - 1)
    for value in (
        world.cipher.seal({"purpose": session.PURPOSE, "kind": "token", "value": token, "expires_at": 1.0}),
        world.cipher.seal({"kind": "token", "value": token, "expires_at": time.time() + 60}),
        b"nonsense",
        b"x" * 3_950,
    ):
        browser.http.set_cookie(COOKIE, value.decode(), path="/ui")
        assert "/ui/sign-in" in (browser.open("/ui/demo/", 303).location or "")
    assert ended.value not in repr(ended)


def test_a_revoked_token_ends_the_session(browser: Browser, world: World, project: str, token: str) -> None:
    from orchestrator.security import tokens

    browser.submit("/ui/sign-in", {"token": token})
    [row] = tokens.list_tokens(world.database, project)
    tokens.revoke_token(world.database, row.id)
    assert "/ui/sign-in" in (browser.open(f"/ui/{project}/", 303).location or "")
    headers = {"Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty", "HX-Request": "true"}
    assert browser.open(f"/ui/{project}/stacks", headers=headers, status=401)


def test_a_name_and_a_password_begin_a_session(world: World, tmp_path: Path) -> None:
    path = tmp_path / "users.yaml"
    hashed = hash_password("right: one")
    path.write_text(f"users:\n  ada: {{password: '{hashed}', project: shop, roles: [reader]}}\n")
    browser = Browser(world.client(auth="basic", users_file=path))
    assert browser.submit("/ui/sign-in", {"user": "ada", "password": "wrong"}, 401)
    assert browser.submit("/ui/sign-in", {"user": "ada", "password": "right: one"}).location == "/ui/shop/"
    assert "ada" in browser.text("/ui/shop/stacks")
    assert "right" not in browser.http.get_cookie(COOKIE, path="/ui").value  # type: ignore[union-attr]


@pytest.mark.filterwarnings("ignore:'cgi' is deprecated:DeprecationWarning")
def test_keystone_issues_a_token_for_a_password(world: World, simulated_cloud: SimulatedCloud) -> None:
    url = simulated_cloud.auth_url
    password = simulated_cloud.password
    service = {"keystone_auth_url": url, "keystone_username": "admin", "keystone_password": password}
    browser = Browser(world.client(auth="keystone", **service, keystone_project_name="demo"))
    values = {"user": "demo", "password": password, "project": "demo"}
    assert browser.submit("/ui/sign-in", values | {"password": "wrong"}, 401)
    assert browser.submit("/ui/sign-in", values | {"project": "unknown"}, 401)
    start = browser.submit("/ui/sign-in", values).location
    assert start is not None
    assert "Overview of demo" in browser.text(start)
    tokens = simulated_cloud.keystone.tokens
    requested = session_token(world, browser)
    assert tokens.caller(requested) is not None
    browser.submit("/ui/sign-out", {})
    assert tokens.caller(requested) is None
    given, _ = issue(url, None, user="demo", password=password, user_domain="Default", **OF_DEMO) or ("", 0)
    browser.submit("/ui/sign-in", {"token": given})
    browser.submit("/ui/sign-out", {})
    assert tokens.caller(given) is not None  # other programs use it


def session_token(world: World, browser: Browser) -> str:
    """Return the token of a session."""
    cookie = browser.http.get_cookie(COOKIE, path="/ui")
    assert cookie is not None
    return str(world.cipher.open(cookie.value.encode())["value"])


def test_the_root_of_the_api_is_unchanged(api: Client) -> None:
    assert api.http.get("/").status_code == 300
    assert api.http.get("/uix").status_code == 404


def test_a_project_named_ui_keeps_its_api(world: World) -> None:
    world.stack("ui", "mine")
    assert world.client().names("/ui/stacks") == ["mine"]


def test_scripts_and_styles_have_addresses_with_a_hash(browser: Browser) -> None:
    page = browser.text("/ui/sign-in")
    [style] = [part for part in page.split('"') if part.endswith("console.css")]
    response = browser.open(style)
    assert response.mimetype == "text/css"
    assert "immutable" in response.headers["Cache-Control"]
    browser.open(style.replace("console.css", "../app.py"), 404)
    browser.open(style.replace("console.css", "unknown.css"), 404)
    assert NAVIGATION
