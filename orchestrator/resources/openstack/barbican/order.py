"""OS::Barbican::Order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from orchestrator.clients.openstack.platform_services.key_manager import CONTAINERS, ORDERS
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.resources.base import Attribute, Context, Fault, Observation, Property, Value
from orchestrator.resources.openstack.barbican.barbican_type import BarbicanType, barbican
from orchestrator.resources.openstack.barbican.payload import payload_text
from orchestrator.schema.constraints import AllowedValues, Custom
from orchestrator.template.definition import ResourceDefinition

CERTIFICATE: Final = "certificate"
_KEY: Final = frozenset({"name", "algorithm", "bit_length", "mode", "payload_content_type", "expiration"})
ALLOWED: Final[Mapping[str, frozenset[str]]] = {
    "key": _KEY,
    "asymmetric": _KEY | {"pass_phrase"},
    CERTIFICATE: frozenset(
        {"name", "request_type", "subject_dn", "source_container_ref", "ca_id", "profile", "request_data"}
    ),
}
# By attribute with a content, the name of the secret in the generated container.
CONTENTS: Final = ("public_key", "private_key", "certificate", "intermediates")


def _content(doc: str, *, secret: bool = False) -> Attribute:
    return Attribute(f"{doc}, if the order has generated it.", "string", secret=secret, live=True)


class Order(BarbicanType):
    """An order to generate a key or a certificate, which stays when the order is deleted."""

    name = "OS::Barbican::Order"
    support_version = "2014.2"
    collection = ORDERS
    properties = {
        "name": Property("string", "Name of the generated object."),
        "payload_content_type": Property("string", "Type of the content."),
        "mode": Property("string", "Mode of the algorithm."),
        "expiration": Property(
            "string", "Date of expiration in ISO 8601.", constraints=(Custom("expiration"),)
        ),
        "algorithm": Property("string", "Algorithm of a key. Required for keys."),
        "bit_length": Property("integer", "Bits of a key. Required for keys."),
        "type": Property(
            "string", "Type of the order.", required=True, constraints=(AllowedValues(tuple(ALLOWED)),)
        ),
        "request_type": Property(
            "string",
            "Type of the request for a certificate.",
            constraints=(AllowedValues(("stored-key", "simple-cmc", "custom")),),
        ),
        "subject_dn": Property("string", "Subject of the certificate."),
        "source_container_ref": Property(
            "string", "Container with the key.", constraints=(Custom("barbican.container"),)
        ),
        "ca_id": Property("string", "Id of the authority."),
        "profile": Property("string", "Profile of the certificate; requires `ca_id`."),
        "request_data": Property("string", "Content of the request for a certificate."),
        "pass_phrase": Property("string", "Passphrase of the private key."),
    }
    attributes = {
        "status": Attribute("Status of the order.", "string"),
        "order_ref": Attribute("URL of the order.", "string"),
        "secret_ref": Attribute("URL of the generated secret.", "string"),
        "container_ref": Attribute("URL of the generated container.", "string"),
        "public_key": _content("The public key"),
        "private_key": _content("The private key", secret=True),
        "certificate": _content("The certificate"),
        "intermediates": _content("The intermediate certificates"),
    }

    def validate_among(
        self, name: str, properties: Mapping[str, Value], resources: Mapping[str, ResourceDefinition]
    ) -> Sequence[Fault]:
        """Require the properties of the type of order, and no others."""
        kind = str(properties.get("type"))
        if kind not in ALLOWED:
            return ()
        body = resources[name].body.get("properties") or {}
        present = {key for key, value in body.items() if value is not None} - {"type"}
        messages = []
        if kind != CERTIFICATE and not {"algorithm", "bit_length"} <= present:
            messages.append(f"Properties algorithm and bit_length are required for {kind} type of order.")
        elif kind == CERTIFICATE and "profile" in present and "ca_id" not in present:
            messages.append("profile cannot be specified without ca_id.")
        if unexpected := sorted((present & self.properties.keys()) - ALLOWED[kind]):
            messages.append(
                f"Unexpected properties: {', '.join(unexpected)}. Only these properties are allowed for "
                f"{kind} type of order: {', '.join(sorted(ALLOWED[kind]))}."
            )
        return [Fault(message, alone=True) for message in messages]

    def new_values(self, ctx: Context, props: Mapping[str, Value]) -> JsonObject:
        """Return the order."""
        meta = super().new_values(ctx, props)
        return {"type": meta.pop("type"), "meta": meta}

    def is_same(self, ctx: Context, found: JsonMapping) -> bool:
        """Return whether an order generates the object of the template."""
        desired, meta = self.new_values(ctx, ctx.properties), found.get("meta") or {}
        fields = ("name", "algorithm", "bit_length", "mode")
        same = all(meta.get(field) == desired["meta"].get(field) for field in fields)
        return same and found.get("type") == desired["type"]

    def failure(self, ctx: Context, actual: JsonMapping) -> Observation:
        """Return Heat's words for an order in error."""
        code, reason = actual.get("error_status_code"), actual.get("error_reason")
        return Observation(exists=True, error=f"Order '{ctx.name}' failed: {code} - {reason}")

    def read_attributes(self, ctx: Context, physical_id: str, names: frozenset[str]) -> Mapping[str, Value]:
        """Return the contents of the generated container, and the description as `show`."""
        api = barbican(ctx)
        order = api.find(ORDERS, physical_id) or {}
        values: JsonObject = {"show": _without_passphrase(order)}
        wanted = [name for name in CONTENTS if name in names]
        if wanted:
            container = order.get("container_ref") and api.find(CONTAINERS, order["container_ref"])
            refs = {one["name"]: one["secret_ref"] for one in (container or {}).get("secret_refs") or ()}
            values |= {name: payload_text(api, refs[name]) if name in refs else None for name in wanted}
        return values


def _without_passphrase(order: JsonMapping) -> JsonObject:
    meta = {key: value for key, value in (order.get("meta") or {}).items() if key != "pass_phrase"}
    return {**order, "meta": meta}
