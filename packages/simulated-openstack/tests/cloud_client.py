"""A client with the variables that the cloud prints."""

from __future__ import annotations

from collections.abc import Mapping

import httpx


def signed_in(variables: Mapping[str, str]) -> tuple[httpx.Client, dict[str, str]]:
    """Return a client with a token, and the public URL of each type of service."""
    user = {
        "name": variables["OS_USERNAME"],
        "domain": {"name": variables["OS_USER_DOMAIN_NAME"]},
        "password": variables["OS_PASSWORD"],
    }
    project = {
        "name": variables["OS_PROJECT_NAME"],
        "domain": {"name": variables["OS_PROJECT_DOMAIN_NAME"]},
    }
    identity = {"methods": ["password"], "password": {"user": user}}
    body = {"auth": {"identity": identity, "scope": {"project": project}}}
    answer = httpx.post(f"{variables['OS_AUTH_URL']}/auth/tokens", json=body).raise_for_status()
    urls = {
        service["type"]: endpoint["url"]
        for service in answer.json()["token"]["catalog"]
        for endpoint in service["endpoints"]
        if endpoint["interface"] == "public"
    }
    return httpx.Client(headers={"X-Auth-Token": answer.headers["X-Subject-Token"]}), urls
