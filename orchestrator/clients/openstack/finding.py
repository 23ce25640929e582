"""Objects of services by name or id."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

from orchestrator.clients.keystone.cloud_session import provider_errors
from orchestrator.clients.openstack.cloud import OpenStack
from orchestrator.clients.openstack.service_api import ServiceApi
from orchestrator.json_types import JsonMapping

# The ids of nova, neutron, cinder and glance, and of keystone.
ID: Final = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32}|[0-9a-f]{64}"
)


@dataclass(frozen=True, slots=True)
class Collection:
    """The objects of a kind: their path, and the name of an object and of the list in the answers."""

    path: str
    key: str  # "": the object is the whole answer
    list_key: str
    id_key: str = "id"
    only_ids: bool = True  # every id has the form of ID
    by_name: bool = True  # the list can be restricted to a name; False: it is read as a whole
    unnamed: bool = False  # objects have no name
    query: Mapping[str, Any] = field(default_factory=dict)  # of the list


def is_id(value: str) -> bool:
    """Return whether a value has the form of an id."""
    return ID.fullmatch(value) is not None


def find_ids(
    cloud: OpenStack,
    service: str,
    collection: Collection,
    value: str,
    query: Mapping[str, Any] | None = None,
) -> list[str]:
    """Return the id of the object with the id `value`; without one, the ids of the objects of that name, of
    the credential's project if there are any.

    `service` is the attribute of `cloud`; `query` restricts the list further. Id and name are searched in
    the order that is likely to need a single request.
    """
    api: ServiceApi = getattr(cloud, service)
    ways = [_by_name, _by_id] if not is_id(value) else [_by_id, _by_name]
    if collection.unnamed:
        ways = [_by_id]
    elif collection.only_ids and not is_id(value):
        ways = [_by_name]
    for way in ways:
        if found := way(api, collection, value, query or {}):
            return [str(item[collection.id_key]) for item in _own(cloud, found)]
    return []


def _own(cloud: OpenStack, found: Sequence[JsonMapping]) -> Sequence[JsonMapping]:
    """Return the objects of the credential's project, all if there are none: an administrator sees those of
    every project.
    """
    if len(found) < 2:
        return found
    project_id = _project_id(cloud)
    return [item for item in found if project_id and item.get("project_id") == project_id] or found


def _project_id(cloud: OpenStack) -> str:
    """Return the project of the credential, "" if the session does not know it."""
    session = cloud.cloud.session()
    if not hasattr(session, "get_project_id"):
        return ""
    with provider_errors():
        return str(session.get_project_id() or "")


def _by_id(
    api: ServiceApi,
    collection: Collection,
    value: str,
    query: Mapping[str, Any],  # noqa: ARG001
) -> Sequence[JsonMapping]:
    answer = api.find_one(f"{collection.path}/{quote(value, safe='')}")
    if not answer:
        return ()
    return (answer[collection.key] if collection.key else answer,)


def _by_name(
    api: ServiceApi, collection: Collection, value: str, query: Mapping[str, Any]
) -> Sequence[JsonMapping]:
    restriction = {**collection.query, **query}
    if collection.by_name:
        restriction["name"] = value
    listed = list(api.listed(collection.path, collection.list_key, restriction))
    same_id = () if collection.by_name else [item for item in listed if item[collection.id_key] == value]
    return same_id or [item for item in listed if item.get("name") == value]
