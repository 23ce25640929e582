"""OS::Barbican::GenericContainer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from orchestrator.resources.base import Property, Value
from orchestrator.resources.openstack.barbican.container_type import NAME, ContainerType, reference

_SECRET = {
    "name": Property("string", "Name of the secret in the container.", required=True),
    "ref": Property(
        "string", "URL of the secret.", required=True, constraints=reference("a content").constraints
    ),
}


class GenericContainer(ContainerType):
    """A container for any secrets."""

    name = "OS::Barbican::GenericContainer"
    support_version = "6.0.0"
    container_type = "generic"
    properties = {
        "name": NAME,
        "secrets": Property("list", "The secrets.", schema=Property("map", "A secret.", schema=_SECRET)),
    }

    def references(self, props: Mapping[str, Value]) -> Mapping[str, str]:
        """Return the URLs of the secrets by name."""
        return {one["name"]: one["ref"] for one in props.get("secrets") or ()}

    def urls(self, props: Mapping[str, Value]) -> Sequence[str]:
        """Return the known URLs."""
        return [one["ref"] for one in props.get("secrets") or () if one.get("ref") is not None]
