"""Every operation of the API and every page of the console, for every kind of caller, against the policy."""

# ruff: noqa: F811 - fixtures are imported
from __future__ import annotations

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from api.web_applications import WebHost
from orchestrator_console.app import create_console
from orchestrator_console.session import COOKIE
from tests.integration.api.access_matrix import (
    CALLERS,
    FOREIGN,
    MEMBER,
    NONE,
    READER,
    WRONG,
    Operation,
    Person,
    console_pages,
    cookie,
    operations,
    person,
    signed,
    stack_of,
)
from tests.integration.api_world import Client, World, world  # noqa: F401 - fixtures
from tests.integration.console.console_world import NAVIGATION

FORM = {**NAVIGATION, "Origin": "http://localhost"}
DENIED = "Access was denied to this resource."
# Computations for readers, and reads not for readers: docs/authentication.md, "Roles".
READERS_COMPUTE = {"stacks:preview", "stacks:show_output", "actions:check"}  # a form of the console shows
NOT_FOR_READERS = {"stacks:export", "service:index", "stacks:generate_template"}


@pytest.fixture(scope="module")
def api(world: World) -> Client:
    return world.client(auth="token", unauthenticated_rate_per_address=0, quotas={"requests_per_second": 0})


@pytest.fixture(scope="module")
def console(api: Client) -> Flask:
    """The pages of the console, as the application has them."""
    app = api.http.application
    return create_console(WebHost(app.state, app.wsgi_app))


@pytest.mark.parametrize("name", CALLERS)
def test_every_operation_is_decided_by_the_policy(world: World, api: Client, name: str) -> None:
    stack = stack_of(world)
    who = person(world, stack, name)
    deviations, requested = [], 0
    for made in operations(api.http.application, stack):
        answer, requested = _ask(api, who, made), requested + 1
        leaks = name == FOREIGN and bool(made.query) and str(stack.uuid) in answer.text
        if leaks or not _is_as_expected(who, made, answer):
            deviations.append((made.label, answer.status, answer.get_data(as_text=True)[:200]))
        if not _is_private(made, answer):
            deviations.append((made.label, answer.status, str(answer.headers)))
        answer.close()
    assert not deviations
    assert requested > 150


def _ask(api: Client, who: Person, made: Operation) -> TestResponse:
    """Send a request; a stream has no end and is not read."""
    if made.query:
        return api.http.open("/v1/", method=made.method, query_string=signed(who, made))
    body = {} if made.body is None else {"json": made.body}
    return api.http.open(made.path, method=made.method, headers=who.headers, **body)


def _is_as_expected(who: Person, made: Operation, answer: TestResponse) -> bool:
    """Whether a status, and the message of a refusal, are the policy's."""
    status = answer.status_code
    if made.rule == "":
        return status not in {401, 403}
    if made.rule is None:
        return status in {400, 403}
    if made.query:
        return status in _statuses_of_query(who, made.rule)
    if who.name in {NONE, WRONG}:
        return status == 401
    if who.name == FOREIGN:
        return status == 403 and answer.json["error"]["message"] == DENIED
    if not who.allowed(made.rule):
        message = f"You are not authorized to use {made.rule}."
        return status == 403 and answer.json["error"]["message"] == message
    return status not in {401, 403, 500}


def _statuses_of_query(who: Person, rule: str) -> set[int]:
    """Return the possible statuses of a CloudFormation query: it is for the project of the key."""
    if who.name == NONE:
        return {400}
    return {200, 400} if who.name == FOREIGN or who.allowed(rule) else {403}


def test_readers_change_nothing_and_read_everything_but_what_is_documented(
    world: World, api: Client, console: Flask
) -> None:
    stack = stack_of(world)
    reader, member = (person(world, stack, name) for name in (READER, MEMBER))
    made = [each for each in operations(api.http.application, stack) if each.rule and not each.query]
    forms = [each for each in console_pages(console, stack) if each.rule and each.method != "GET"]
    safe = {each.rule for each in made if each.method == "GET"}
    assert {rule for rule in safe if not reader.allowed(rule)} == NOT_FOR_READERS
    lookups = {"stacks:lookup"}  # redirects, with every method
    unsafe = {each.rule for each in [*made, *forms] if each.method != "GET"} - lookups
    assert {rule for rule in unsafe if reader.allowed(rule)} == READERS_COMPUTE
    assert {rule for rule in safe | unsafe if not member.allowed(rule)} == {"service:index"}


@pytest.mark.parametrize("name", CALLERS)
def test_every_page_of_the_console_is_decided_by_the_policy(
    world: World, api: Client, console: Flask, name: str
) -> None:
    stack = stack_of(world)
    who = person(world, stack, name)
    deviations, requested = [], 0
    for made in console_pages(console, stack):
        browser = api.http.application.test_client()
        if (value := cookie(world, who)) is not None:
            browser.set_cookie(COOKIE, value, path="/ui")
        answer = browser.open(made.path, method=made.method, headers=FORM, data=made.body or None)
        requested += 1
        if answer.status_code not in _statuses_of_page(who, made) or not _is_private(made, answer):
            deviations.append((made.label, answer.status, answer.location))
        answer.close()
    assert not deviations
    assert requested > 40


def _is_private(made: Operation, answer: TestResponse) -> bool:
    """Whether no cache keeps the answer, and no browser guesses its type."""
    cached = answer.headers.getlist("Cache-Control")
    is_field = made.path.endswith(("/field", "/field/data")) and "ETag" in answer.headers
    expected = "private, no-cache" if is_field else "no-store"
    return cached == [expected] and answer.headers.getlist("X-Content-Type-Options") == ["nosniff"]


def _statuses_of_page(who: Person, made: Operation) -> set[int]:
    is_read = made.method == "GET"
    if made.rule == "":
        return {200, 303, 401, 404}  # sign-in and files
    if who.name in {NONE, WRONG}:
        return {303} if is_read else {401}  # to the sign-in page
    if who.name == FOREIGN:
        return {404}
    if made.rule is not None and not who.allowed(made.rule):
        return {403}
    return {200, 303, 400, 404, 409}
