"""Objects of services by name or id."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from orchestrator.clients.keystone.cloud_session import provider_errors
from orchestrator.clients.openstack.cloud import OpenStack
from orchestrator.clients.openstack.object_collections import Collection, Collections
from orchestrator.json_types import JsonMapping

# The ids of nova, neutron, cinder and glance, and of keystone.
ID: Final = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32}|[0-9a-f]{64}"
)


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
    api: Collections = getattr(cloud, service)
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
    api: Collections,
    collection: Collection,
    value: str,
    query: Mapping[str, Any],  # noqa: ARG001
) -> Sequence[JsonMapping]:
    found = api.find(collection, value)
    return (found,) if found else ()


def _by_name(
    api: Collections, collection: Collection, value: str, query: Mapping[str, Any]
) -> Sequence[JsonMapping]:
    named = {"name": value} if collection.by_name else {}
    listed = list(api.search(collection, **query, **named))
    same_id = () if collection.by_name else [item for item in listed if item[collection.id_key] == value]
    return same_id or [item for item in listed if item.get("name") == value]
