"""Nova's key pairs, flavors, server groups and host aggregates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from urllib.parse import quote

from orchestrator.clients.openstack.service_api import ServiceApi
from orchestrator.errors import ProviderNotFound
from orchestrator.json_types import JsonMapping, JsonObject

KEY_TYPES: Final = "2.10"  # types, and keys of other users; later microversions create no keys of their own
GROUP_POLICIES: Final = "2.15"  # soft policies
GROUP_RULES: Final = "2.64"


class KeyPairs:
    """Key pairs of a user; `user_id` "" is the caller."""

    def __init__(self, api: ServiceApi) -> None:
        """Send no request yet."""
        self._api = api

    def create(self, keypair: JsonMapping) -> JsonObject:
        """Create or import a key pair; return it, with the private key if nova generated it."""
        return inner(self._api.post("/os-keypairs", {"keypair": keypair}, microversion=KEY_TYPES))

    def get(self, name: str, user_id: str = "") -> JsonObject | None:
        """Return a key pair, None if it does not exist."""
        path, query = f"/os-keypairs/{quote(name, safe='')}", _of_user(user_id)
        try:
            return inner(self._api.get(path, query, microversion=KEY_TYPES))
        except ProviderNotFound:
            return None

    def delete(self, name: str, user_id: str = "") -> bool:
        """Delete a key pair. Return whether it existed."""
        path, query = f"/os-keypairs/{quote(name, safe='')}", _of_user(user_id)
        try:
            self._api.request("DELETE", path, query=query, microversion=KEY_TYPES)
        except ProviderNotFound:
            return False
        return True


class Flavors:
    """Flavors, their extra specs, and the projects that may use a private flavor."""

    def __init__(self, api: ServiceApi) -> None:
        """Send no request yet."""
        self._api = api

    def create(self, flavor: JsonMapping) -> JsonObject:
        """Create a flavor."""
        return inner(self._api.post("/flavors", {"flavor": flavor}))

    def get(self, flavor_id: str) -> JsonObject | None:
        """Return a flavor, None if it does not exist."""
        answer = self._api.find_one(f"/flavors/{flavor_id}")
        return None if answer is None else inner(answer)

    def listed(self, *, private: bool = False) -> Iterator[JsonObject]:
        """Yield the flavors; `private` includes those of other projects, for administrators."""
        return self._api.listed("/flavors/detail", "flavors", {"is_public": "none"} if private else None)

    def delete(self, flavor_id: str) -> bool:
        """Delete a flavor. Return whether it existed."""
        return self._api.delete(f"/flavors/{flavor_id}")

    def specs(self, flavor_id: str) -> JsonObject:
        """Return the extra specs of a flavor."""
        specs: JsonObject = self._api.get(f"/flavors/{flavor_id}/os-extra_specs").get("extra_specs") or {}
        return specs

    def set_specs(self, flavor_id: str, specs: JsonMapping) -> None:
        """Add or change extra specs of a flavor."""
        self._api.post(f"/flavors/{flavor_id}/os-extra_specs", {"extra_specs": specs})

    def delete_spec(self, flavor_id: str, key: str) -> bool:
        """Remove an extra spec of a flavor. Return whether it existed."""
        return self._api.delete(f"/flavors/{flavor_id}/os-extra_specs/{quote(key, safe='')}")

    def projects(self, flavor_id: str) -> set[str]:
        """Return the projects that may use a private flavor."""
        answer = self._api.find_one(f"/flavors/{flavor_id}/os-flavor-access") or {}
        return {access["tenant_id"] for access in answer.get("flavor_access") or ()}

    def allow(self, flavor_id: str, project_id: str) -> None:
        """Allow a project to use a private flavor."""
        self._api.post(f"/flavors/{flavor_id}/action", {"addTenantAccess": {"tenant": project_id}})

    def deny(self, flavor_id: str, project_id: str) -> None:
        """Withdraw a private flavor from a project."""
        self._api.post(f"/flavors/{flavor_id}/action", {"removeTenantAccess": {"tenant": project_id}})


class ServerGroups:
    """Groups of servers with a policy for their placement."""

    def __init__(self, api: ServiceApi) -> None:
        """Send no request yet."""
        self._api = api

    def create(self, name: str, policy: str, rules: JsonMapping | None = None) -> JsonObject:
        """Create a group; `rules` require a newer nova."""
        if rules:
            group = {"name": name, "policy": policy, "rules": rules}
            return inner(
                self._api.post("/os-server-groups", {"server_group": group}, microversion=GROUP_RULES)
            )
        old = {"server_group": {"name": name, "policies": [policy]}}
        return inner(self._api.post("/os-server-groups", old, microversion=GROUP_POLICIES))

    def get(self, group_id: str) -> JsonObject | None:
        """Return a group, None if it does not exist."""
        answer = self._api.find_one(f"/os-server-groups/{group_id}")
        return None if answer is None else inner(answer)

    def listed(self) -> Iterator[JsonObject]:
        """Yield the groups of the project."""
        yield from self._api.get("/os-server-groups").get("server_groups") or ()

    def delete(self, group_id: str) -> bool:
        """Delete a group. Return whether it existed."""
        return self._api.delete(f"/os-server-groups/{group_id}")


class Aggregates:
    """Host aggregates."""

    def __init__(self, api: ServiceApi) -> None:
        """Send no request yet."""
        self._api = api

    def create(self, name: str, zone: str | None) -> JsonObject:
        """Create an aggregate in an availability zone."""
        body: JsonObject = {"name": name}
        if zone:
            body["availability_zone"] = zone
        return inner(self._api.post("/os-aggregates", {"aggregate": body}))

    def get(self, aggregate_id: str) -> JsonObject | None:
        """Return an aggregate, None if it does not exist."""
        answer = self._api.find_one(f"/os-aggregates/{aggregate_id}")
        return None if answer is None else inner(answer)

    def listed(self) -> Iterator[JsonObject]:
        """Yield the aggregates."""
        yield from self._api.get("/os-aggregates").get("aggregates") or ()

    def update(self, aggregate_id: str, values: JsonMapping) -> None:
        """Change the name or the availability zone."""
        self._api.put(f"/os-aggregates/{aggregate_id}", {"aggregate": values})

    def set_metadata(self, aggregate_id: str, metadata: JsonMapping) -> None:
        """Add, change and (with null) remove metadata."""
        self._act(aggregate_id, "set_metadata", {"metadata": metadata})

    def add_host(self, aggregate_id: str, host: str) -> None:
        """Add a host."""
        self._act(aggregate_id, "add_host", {"host": host})

    def remove_host(self, aggregate_id: str, host: str) -> None:
        """Remove a host."""
        self._act(aggregate_id, "remove_host", {"host": host})

    def delete(self, aggregate_id: str) -> bool:
        """Delete an aggregate. Return whether it existed."""
        return self._api.delete(f"/os-aggregates/{aggregate_id}")

    def _act(self, aggregate_id: str, action: str, arguments: JsonMapping) -> None:
        self._api.post(f"/os-aggregates/{aggregate_id}/action", {action: arguments})


def inner(answer: JsonMapping) -> JsonObject:
    """Return the object that an answer wraps."""
    return next((value for value in answer.values() if isinstance(value, dict)), {})


def _of_user(user_id: str) -> JsonObject:
    return {"user_id": user_id} if user_id else {}
