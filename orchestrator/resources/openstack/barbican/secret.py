"""OS::Barbican::Secret."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Final

from orchestrator.clients.openstack.platform_services.key_manager import SECRETS, TEXT
from orchestrator.json_types import JsonObject
from orchestrator.resources.base import Attribute, Context, Fault, Property, Value
from orchestrator.resources.openstack.barbican.barbican_type import BarbicanType, barbican
from orchestrator.resources.openstack.barbican.payload import payload_text
from orchestrator.schema.constraints import AllowedValues, Custom, Range
from orchestrator.template.definition import ResourceDefinition

OCTETS: Final = "application/octet-stream"
PAYLOAD, CONTENT_TYPE, ENCODING = "payload", "payload_content_type", "payload_content_encoding"


class Secret(BarbicanType):
    """A secret: a key, a certificate, a password. Its content is never shown."""

    name = "OS::Barbican::Secret"
    support_version = "2014.2"
    collection = SECRETS
    compared = ("name", "secret_type", "algorithm", "bit_length", "mode")
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

    def validate(self, properties: Mapping[str, Value], stack_timeout_seconds: float) -> Sequence[Fault]:
        """Require that the content has its encoding."""
        payload, encoding = properties.get(PAYLOAD), properties.get(ENCODING)
        if properties.get(CONTENT_TYPE) == OCTETS and encoding and payload and not _is_base64(payload):
            message = f"Invalid {PAYLOAD} for specified '{encoding}' value of '{ENCODING}' property."
            return (Fault(message, PAYLOAD, alone=True),)
        return ()

    def validate_among(
        self, name: str, properties: Mapping[str, Value], resources: Mapping[str, ResourceDefinition]
    ) -> Sequence[Fault]:
        """Require content, type and encoding together. Values that are not known yet count as given."""
        present = {
            key
            for key, value in (resources[name].body.get("properties") or {}).items()
            if value not in (None, "")
        }
        content_type, faults = properties.get(CONTENT_TYPE), []
        if CONTENT_TYPE in present and PAYLOAD not in present:
            faults.append(f"{CONTENT_TYPE} cannot be specified without {PAYLOAD}.")
        elif content_type == OCTETS and ENCODING not in present:
            faults.append(
                f"Property unspecified. For '{OCTETS}' value of '{CONTENT_TYPE}' property, '{ENCODING}' "
                "property must be specified."
            )
        if ENCODING in present and (CONTENT_TYPE not in present or content_type == TEXT):
            faults.append(
                f"{ENCODING} property should only be specified for {CONTENT_TYPE} with value {OCTETS}."
            )
        return [Fault(message, alone=True) for message in faults]

    def new_values(self, ctx: Context, props: Mapping[str, Value]) -> JsonObject:
        """Return the secret; the type of a content is a text by default."""
        values = super().new_values(ctx, props)
        if values.get(PAYLOAD) and not values.get(CONTENT_TYPE):
            values[CONTENT_TYPE] = TEXT
        return values

    def read_attributes(self, ctx: Context, physical_id: str, names: frozenset[str]) -> Mapping[str, Value]:
        """Return the content, and the description as `show`."""
        values = dict(super().read_attributes(ctx, physical_id, names)) if "show" in names else {}
        if "decrypted_payload" in names:
            values["decrypted_payload"] = payload_text(barbican(ctx), physical_id)
        return values


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text)
    except (binascii.Error, ValueError):
        return False
    return True
