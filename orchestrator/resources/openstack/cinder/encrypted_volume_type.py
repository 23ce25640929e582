"""OS::Cinder::EncryptedVolumeType: the encryption of a volume type, which has at most one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from orchestrator.clients.openstack.block_storage import ENCRYPTIONS
from orchestrator.json_types import JsonObject
from orchestrator.resources.base import Context, Created, Observation, Property, Unique, Value
from orchestrator.resources.openstack.cinder.base import CinderType, block_storage
from orchestrator.schema.constraints import AllowedValues, Custom
from orchestrator.schema.translation import Resolve, Rule

ENCRYPTION_ID: Final = "encryption_id"
FIELDS: Final = ("provider", "control_location", "cipher", "key_size")


class EncryptedVolumeType(CinderType):
    """Encrypts the volumes of a type. Requires the role of an administrator."""

    name = "OS::Cinder::EncryptedVolumeType"
    support_version = "5.0.0"
    unique = Unique((("volume_type",),), "delete", searched=True)
    properties: ClassVar[Mapping[str, Property]] = {
        "provider": Property(
            "string", "The class that encrypts, such as `luks`.", required=True, update_allowed=True
        ),
        "control_location": Property(
            "string",
            "Where the encryption is done: by the compute service or by the backend.",
            default="front-end",
            update_allowed=True,
            constraints=(AllowedValues(("front-end", "back-end")),),
        ),
        "cipher": Property(
            "string",
            "Algorithm and mode.",
            update_allowed=True,
            constraints=(AllowedValues(("aes-xts-plain64", "aes-cbc-essiv")),),
        ),
        "key_size": Property("integer", "Size of the key in bits.", update_allowed=True),
        "volume_type": Property(
            "string",
            "Name or id of the volume type.",
            required=True,
            constraints=(Custom("cinder.vtype"),),
        ),
    }
    translation: ClassVar[tuple[Rule, ...]] = (Resolve(("volume_type",), "cinder.vtype"),)

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Add the encryption to the type."""
        encryption = block_storage(ctx).create(ENCRYPTIONS, _request(props), parent=props["volume_type"])
        return Created(props["volume_type"], {ENCRYPTION_ID: encryption.get(ENCRYPTION_ID)})

    def find(self, ctx: Context, token: str) -> str | None:
        """Return the type if it has this encryption."""
        encryption = self.raw(ctx, ctx.properties["volume_type"])
        wanted = _request(ctx.properties)
        same = encryption is not None and all(encryption.get(key) == value for key, value in wanted.items())
        return str(ctx.properties["volume_type"]) if same else None

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Read the encryption."""
        encryption = self._own(ctx, physical_id)
        if encryption is None:
            return Observation(exists=False, reason=f"The volume type {physical_id} has no encryption.")
        return Observation(exists=True, properties={key: encryption.get(key) for key in FIELDS})

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        """Change the encryption."""
        encryption = self.raw(ctx, physical_id) or {}
        id_ = encryption.get(ENCRYPTION_ID, "")
        block_storage(ctx).update(ENCRYPTIONS, id_, _request(props), parent=physical_id)
        return Created(physical_id, ctx.data)

    def equal(self, name: str, before: Value, after: Value) -> bool:
        """Return whether two values of a property are equal."""
        return bool((before or None) == (after or None))

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Remove the encryption, unless it belongs to another user."""
        encryption = self._own(ctx, physical_id)
        if encryption is not None:
            block_storage(ctx).remove(ENCRYPTIONS, encryption[ENCRYPTION_ID], parent=physical_id)

    def _own(self, ctx: Context, physical_id: str) -> JsonObject | None:
        """Return the encryption of the type, None without one or if it belongs to another user."""
        encryption, own_id = self.raw(ctx, physical_id), ctx.data.get(ENCRYPTION_ID)
        is_own = encryption is not None and own_id in (None, encryption.get(ENCRYPTION_ID))
        return encryption if is_own else None

    def raw(self, ctx: Context, physical_id: str) -> JsonObject | None:
        """Return cinder's view of the encryption, None without one."""
        found = block_storage(ctx).find_one(ENCRYPTIONS.of(parent=physical_id))
        return found if found and found.get("volume_type_id") else None


def _request(props: Mapping[str, Value]) -> JsonObject:
    return {name: props[name] for name in FIELDS if props.get(name) not in (None, "", 0)}
