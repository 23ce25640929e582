"""Endpoints of services in other regions, and the credentials for them.

The operator defines both; a template cannot. The catalog is a file of the operator (`catalog_file`); with
Keystone, its catalog is used too (`keystone/cloud_session.py`):

    regions:
      north:
        url: https://north.example:8004/v1
        ca_file: /etc/ssl/north.pem  # if the system does not trust the authority
        projects:
          shop: {project: shop-of-the-north, token_file: /run/secrets/north-shop}

Only the projects listed for a region can call it, each with its own credentials.

An installation without authentication is its own region, for every project, unless the file overrides it:
each of its callers could create such a stack directly, too.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final, cast
from urllib.parse import quote

import httpx

from orchestrator.config import Settings
from orchestrator.errors import InvalidTemplate, LimitExceeded, Misconfigured, ProviderError
from orchestrator.json_types import JsonMapping
from orchestrator.template.parse import Limits, parse

_REGION: Final = frozenset({"url", "ca_file", "projects"})
_PROJECT: Final = frozenset({"project", "token", "token_file"})


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An orchestration service, with a project's credentials."""

    region: str
    url: str  # ends with the project
    token: str = field(default="", repr=False)
    ca_file: str | None = None
    # returns a new token when this token is rejected
    renew: Callable[[], str] | None = field(default=None, repr=False)


class NoEndpoint(ProviderError):
    """The catalog has no orchestration service in the region for this project."""

    def __init__(self, region: str) -> None:
        """Name the region."""
        super().__init__(
            f"publicURL endpoint for orchestration service in {region} region not found", "EndpointNotFound"
        )


@dataclass(frozen=True, slots=True)
class Catalog:
    """The services that a project may call; `own_region` is the default region."""

    endpoints: Mapping[str, Endpoint] = field(default_factory=dict)
    own_region: str = ""

    def endpoint(self, region: str | None) -> Endpoint:
        """Return the orchestration service of a region.

        Raises:
            NoEndpoint: the project has none there.
        """
        endpoint_ = self.endpoints.get(region or self.own_region)
        if endpoint_ is None:
            raise NoEndpoint(region or self.own_region)
        return endpoint_

    def everywhere(self) -> Iterable[Endpoint]:
        """Return the service of every region."""
        return self.endpoints.values()


def catalog_of(settings: Settings, project_id: str, further: Mapping[str, Endpoint] | None = None) -> Catalog:
    """Return a project's catalog. The file is read once per process: a change takes effect at a restart.

    `further` are additional endpoints; the file overrides them.

    Raises:
        Misconfigured: the file cannot be read or is invalid; the message names it.
    """
    own_region, endpoints = settings.region_name, dict[str, Endpoint]()
    if settings.auth == "none":
        endpoints[own_region] = Endpoint(own_region, f"{settings.endpoint}/v1/{quote(project_id, safe='')}")
    if settings.catalog_file is not None:
        regions = _read(settings.catalog_file)
        if own_region in regions:
            endpoints = {}
        endpoints |= {
            name: projects[project_id] for name, projects in regions.items() if project_id in projects
        }
    if further is None:
        return Catalog(endpoints, own_region)
    if not endpoints:
        return Catalog(further, own_region)
    return Catalog(ChainMap(endpoints, cast(MutableMapping[str, Endpoint], further)), own_region)


@cache
def _read(path: Path) -> Mapping[str, Mapping[str, Endpoint]]:
    """Return the endpoints by region and project."""
    try:
        document = parse(path.read_bytes(), Limits(max_bytes=16 * 1024 * 1024), "catalog")
        _only(document, frozenset({"regions"}), "catalog")
        return {
            name: dict(_region(name, _map(body, f"regions.{name}")))
            for name, body in _map(document.get("regions"), "regions").items()
        }
    except OSError as error:
        raise Misconfigured(f"the catalog {path} cannot be read: {error.strerror or error}") from error
    except (InvalidTemplate, LimitExceeded, ValueError) as error:
        raise Misconfigured(f"the catalog {path} is wrong: {error}") from error


def _region(name: str, body: JsonMapping) -> Iterable[tuple[str, Endpoint]]:
    place = f"regions.{name}"
    _only(body, _REGION, place)
    url = httpx.URL(_text(body.get("url"), f"{place}.url"))
    if url.scheme not in ("http", "https") or not url.host or url.userinfo:
        raise ValueError(f"{place}.url must be the http(s) address of the service's v1")
    ca_file = body.get("ca_file")
    for project, login in _map(body.get("projects"), f"{place}.projects").items():
        at = f"{place}.projects.{project}"
        _only(_map(login, at), _PROJECT, at)
        project_path = quote(_text(login.get("project"), f"{at}.project"), safe="")
        yield (
            project,
            Endpoint(
                name,
                f"{str(url).rstrip('/')}/{project_path}",
                _token(login, at),
                None if ca_file is None else _text(ca_file, f"{place}.ca_file"),
            ),
        )


def _token(login: JsonMapping, at: str) -> str:
    """Return the token, "" for an installation without authentication."""
    if "token_file" in login:
        return Path(_text(login["token_file"], f"{at}.token_file")).read_text().strip()
    return _text(login["token"], f"{at}.token") if "token" in login else ""


def _map(value: object, place: str) -> JsonMapping:
    if not isinstance(value, dict):
        raise ValueError(f"{place} must be a map")
    return value


def _text(value: object, place: str) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"{place} must be a string")
    return value


def _only(body: JsonMapping, allowed: frozenset[str], place: str) -> None:
    if unknown := sorted(body.keys() - allowed):
        raise ValueError(f"{place} has no {', '.join(unknown)}; it may have {', '.join(sorted(allowed))}")
