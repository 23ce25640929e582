"""The common verbs of Barbican's containers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from orchestrator.clients.openstack.platform_services.key_manager import CONTAINERS
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.resources.base import Attribute, Context, Fault, Observation, Property, Value
from orchestrator.resources.openstack.barbican.barbican_type import BarbicanType
from orchestrator.schema.constraints import Custom

NAME: Final = Property("string", "Name of the container.")


def reference(content: str) -> Property:
    """Return a property for a secret."""
    return Property("string", f"URL of the secret with {content}.", constraints=(Custom("barbican.secret"),))


class ContainerType(BarbicanType):
    """A container: names for several secrets."""

    collection = CONTAINERS
    compared = ("name", "type")
    container_type: ClassVar[str]
    attributes = {
        "status": Attribute("Status of the container.", "string"),
        "container_ref": Attribute("URL of the container.", "string"),
        "secret_refs": Attribute("URLs of the secrets, by name.", "map"),
        "consumers": Attribute("The registered consumers of the container.", "list"),
    }

    def references(self, props: Mapping[str, Value]) -> Mapping[str, str]:
        """Return the URLs of the secrets by name: the properties that end so."""
        suffix = "_ref"
        return {
            name.removesuffix(suffix): value
            for name, value in props.items()
            if name.endswith(suffix) and value is not None
        }

    def urls(self, props: Mapping[str, Value]) -> Sequence[str]:
        """Return the known URLs."""
        return list(self.references(props).values())

    def validate(self, properties: Mapping[str, Value], stack_timeout_seconds: float) -> Sequence[Fault]:
        """Refuse a secret under two names."""
        urls = self.urls(properties)
        if len(urls) == len(set(urls)):
            return ()
        return (Fault("Duplicate refs are not allowed.", alone=True),)

    def new_values(self, ctx: Context, props: Mapping[str, Value]) -> JsonObject:
        """Return the container."""
        refs = [{"name": name, "secret_ref": ref} for name, ref in self.references(props).items()]
        name = props.get("name") or ctx.physical_name
        return {"name": name, "type": self.container_type, "secret_refs": refs}

    def failure(self, ctx: Context, actual: JsonMapping) -> Observation:
        """Return Heat's words for a container in error, which is created again."""
        code, reason = actual.get("error_status_code"), actual.get("error_reason")
        text = f"Container '{ctx.name}' creation failed: {code} - {reason}"
        return Observation(exists=True, error=f'Went to status ERROR due to "{text}"', replaceable=True)

    def attribute_values(self, actual: JsonMapping) -> JsonObject:
        """Return the recorded attributes."""
        refs = {one["name"]: one["secret_ref"] for one in actual.get("secret_refs") or ()}
        return super().attribute_values(actual) | {"secret_refs": refs}
