"""Tokens for the variables of OpenStack's clients."""

from __future__ import annotations

import pytest

from orchestrator.clients.keystone.cloud_session import Cloud
from orchestrator.clients.keystone.environment_login import log_in

DOMAINS = {"OS_USER_DOMAIN_NAME": "Default", "OS_PROJECT_DOMAIN_NAME": "Default"}


@pytest.fixture
def variables(credentials: dict[str, str]) -> dict[str, str]:
    return credentials | DOMAINS | {"OS_USERNAME": "demo"}


def test_a_password_gives_a_token_of_the_project(variables: dict[str, str], member_cloud: Cloud) -> None:
    token, project_id = log_in(variables)
    session = member_cloud.session()
    assert project_id == session.get_project_id()
    url = f"{variables['OS_AUTH_URL']}/auth/tokens"
    shown = session.get(url, headers={"X-Subject-Token": token}).json()["token"]
    assert (shown["user"]["name"], shown["project"]["id"]) == ("demo", project_id)


def test_a_token_gives_a_token_of_the_project(variables: dict[str, str]) -> None:
    first = log_in(variables)
    given = {"OS_AUTH_TYPE": "token", "OS_TOKEN": first.token, "OS_PROJECT_ID": first.project_id}
    assert log_in({"OS_AUTH_URL": variables["OS_AUTH_URL"]} | given).project_id == first.project_id


def test_a_wrong_password_is_refused(variables: dict[str, str]) -> None:
    with pytest.raises(LookupError, match="401"):
        log_in(variables | {"OS_PASSWORD": "wrong"})


def test_an_unknown_method_is_refused(variables: dict[str, str]) -> None:
    with pytest.raises(LookupError, match="unknown method pasword"):
        log_in(variables | {"OS_AUTH_TYPE": "pasword"})
