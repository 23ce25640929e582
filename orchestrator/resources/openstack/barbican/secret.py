"""OS::Barbican::Secret."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import Final

from orchestrator.clients.openstack.platform_services.key_manager import SECRETS, TEXT
from orchestrator.json_types import JsonObject
from orchestrator.resources.base import Attribute, Context, Fault, Property, Value
from orchestrator.resources.openstack.barbican.barbican_type import BarbicanType, barbican
from orchestrator.resources.openstack.barbican.payload import payload_text
from orchestrator.resources.openstack.property_rules import PropertyRule, Refused
from orchestrator.schema.constraints import AllowedValues, Custom, Range
from orchestrator.template.definition import ResourceDefinition

OCTETS: Final = "application/octet-stream"
PAYLOAD, CONTENT_TYPE, ENCODING = "payload", "payload_content_type", "payload_content_encoding"


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text)
    except (binascii.Error, ValueError):
        return False
    return True


class EncodingRule(PropertyRule):
    """Content, type and encoding are given together. Values that are not known yet count as given."""

    def of_template(
        self, name: str, properties: Mapping[str, Value], resources: Mapping[str, ResourceDefinition]
    ) -> Iterator[Fault]:
        """Yield the faults of the combination."""
        written = resources[name].body.get("properties") or {}
        present = {key for key, value in written.items() if value not in (None, "")}
        content_type = properties.get(CONTENT_TYPE)
        if CONTENT_TYPE in present and PAYLOAD not in present:
            yield Fault(f"{CONTENT_TYPE} cannot be specified without {PAYLOAD}.", alone=True)
        elif content_type == OCTETS and ENCODING not in present:
            message = (
                f"Property unspecified. For '{OCTETS}' value of '{CONTENT_TYPE}' property, '{ENCODING}' "
                "property must be specified."
            )
            yield Fault(message, alone=True)
        if ENCODING in present and (CONTENT_TYPE not in present or content_type == TEXT):
            message = f"{ENCODING} property should only be specified for {CONTENT_TYPE} with value {OCTETS}."
            yield Fault(message, alone=True)


class Secret(BarbicanType):
    """A secret: a key, a certificate, a password. Its content is never shown."""

    name = "OS::Barbican::Secret"
    support_version = "2014.2"
    collection = SECRETS
    compared = ("name", "secret_type", "algorithm", "bit_length", "mode")
    rules = (
        Refused(
            f"Invalid {PAYLOAD} for specified '{{{ENCODING}}}' value of '{ENCODING}' property.",
            lambda p: (
                p.get(CONTENT_TYPE) == OCTETS
                and p.get(ENCODING)
                and p.get(PAYLOAD)
                and not _is_base64(p[PAYLOAD])
            ),
            PAYLOAD,
        ),
        EncodingRule(),
    )
    properties = {
        "name": Property("string", "Name of the secret."),
        PAYLOAD: Property("string", "Content of the secret."),
        "secret_type": Property(
            "string",
            "Type of the secret.",
            default="opaque",
            constraints=(
                AllowedValues(("symmetric", "public", "private", "certificate", "passphrase", "opaque")),
            ),
        ),
        CONTENT_TYPE: Property(
            "string", "Type of the content.", constraints=(AllowedValues((TEXT, OCTETS)),)
        ),
        ENCODING: Property(
            "string", "Encoding of the given content.", constraints=(AllowedValues(("base64",)),)
        ),
        "expiration": Property(
            "string", "Date of expiration in ISO 8601.", constraints=(Custom("expiration"),)
        ),
        "algorithm": Property("string", "Algorithm that the secret is for."),
        "bit_length": Property("integer", "Bits of the secret.", constraints=(Range(0),)),
        "mode": Property("string", "Mode of the algorithm."),
    }
    attributes = {
        "status": Attribute("Status of the secret.", "string"),
        "decrypted_payload": Attribute("Content of the secret.", "string", secret=True, live=True),
    }

    def new_values(self, ctx: Context, props: Mapping[str, Value]) -> JsonObject:
        """Return the secret; the type of a content is a text by default."""
        values = super().new_values(ctx, props)
        if values.get(PAYLOAD) and not values.get(CONTENT_TYPE):
            values[CONTENT_TYPE] = TEXT
        return values

    def live_attribute(self, ctx: Context, name: str, actual: JsonObject) -> Value:
        """Return the content, or the description as `show`."""
        if name != "decrypted_payload":
            return super().live_attribute(ctx, name, actual)
        return payload_text(barbican(ctx), str(actual["secret_ref"]), actual)
