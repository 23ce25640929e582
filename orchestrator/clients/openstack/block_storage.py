"""Cinder's API."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Final

from orchestrator.clients.openstack.compute_collections import inner
from orchestrator.clients.openstack.object_collections import Collection, Collections
from orchestrator.clients.openstack.service_api import ServiceApi
from orchestrator.errors import ProviderNotFound
from orchestrator.json_types import JsonMapping, JsonObject

ATTACHMENTS: Final = "3.27"  # lists and deletes attachments
ATTACHED_EXTEND: Final = "3.42"  # extends volumes that are in use
MESSAGES: Final = "3.5"  # selects messages for users by object
MAX_MESSAGES: Final = 20
QUOTA_SETS: Final = Collection("/os-quota-sets", "quota_set", "")


class BlockStorage(Collections):
    """Cinder, called as a credential."""

    service: ClassVar[str] = "cinder"
    service_type: ClassVar[str] = "block-storage"
    complete_lists: ClassVar[str | None] = ""

    # Volumes

    def create_volume(self, volume: JsonMapping, hints: JsonMapping | None = None) -> JsonObject:
        """Request a volume."""
        body: JsonObject = {"volume": volume}
        if hints:
            body["OS-SCH-HNT:scheduler_hints"] = hints
        return inner(self.post("/volumes", body))

    def volume(self, volume_id: str) -> JsonObject | None:
        """Return a volume for an observation, None if it does not exist."""
        return self.observed("/volumes", "volume", volume_id, listing="/volumes/detail")

    def current_volume(self, volume_id: str) -> JsonObject | None:
        """Return a volume as it is now, None if it does not exist."""
        answer = self.find_one(f"/volumes/{volume_id}")
        return None if answer is None else inner(answer)

    def volumes(self, query: JsonMapping | None = None) -> Iterator[JsonObject]:
        """Yield the volumes of the project that a query selects."""
        return self.listed("/volumes/detail", "volumes", query)

    def update_volume(self, volume_id: str, values: JsonMapping) -> None:
        """Change the name or the description."""
        self.put(f"/volumes/{volume_id}", {"volume": values})

    def set_volume_metadata(self, volume_id: str, metadata: JsonMapping) -> None:
        """Replace the metadata of a volume."""
        self.put(f"/volumes/{volume_id}/metadata", {"metadata": metadata})

    def delete_volume(self, volume_id: str) -> bool:
        """Request the deletion of a volume. Return whether it existed."""
        return self.delete(f"/volumes/{volume_id}")

    def extend_volume(self, volume_id: str, size: int) -> None:
        """Request a larger size in GiB, also while the volume is in use."""
        self._act(volume_id, "os-extend", {"new_size": size}, microversion=ATTACHED_EXTEND)

    def retype_volume(self, volume_id: str, volume_type: str, policy: str = "on-demand") -> None:
        """Request another volume type; the policy "on-demand" permits a migration."""
        self._act(volume_id, "os-retype", {"new_type": volume_type, "migration_policy": policy})

    def set_volume_read_only(self, volume_id: str, *, read_only: bool) -> None:
        """Make a volume read-only or writable."""
        self._act(volume_id, "os-update_readonly_flag", {"readonly": read_only})

    def end_detaching(self, volume_id: str) -> None:
        """Set a volume in use whose detachment has failed."""
        self._act(volume_id, "os-roll_detaching", {})

    def attachments(self, volume_id: str) -> list[JsonObject]:
        """Return the attachments of a volume, complete or not, with the server as `instance`."""
        query = {"volume_id": volume_id}
        return list(self.listed("/attachments", "attachments", query, microversion=ATTACHMENTS))

    def delete_attachment(self, attachment_id: str) -> bool:
        """Delete an attachment that nova does not know. Return whether it existed."""
        return self.delete(f"/attachments/{attachment_id}", microversion=ATTACHMENTS)

    def messages(self, object_id: str) -> Sequence[JsonObject]:
        """Return the latest messages for users about a volume or a backup, the newest first: `user_message`,
        `request_id`, `created_at`.
        """
        query = {"resource_uuid": object_id, "limit": MAX_MESSAGES}
        answer = self.get("/messages", query, microversion=MESSAGES)
        found: Sequence[JsonObject] = answer.get("messages") or ()
        return found

    # Backups

    def create_backup(self, backup: JsonMapping) -> JsonObject:
        """Request a backup of a volume."""
        return inner(self.post("/backups", {"backup": backup}))

    def backup(self, backup_id: str) -> JsonObject | None:
        """Return a backup, None if it does not exist."""
        answer = self.find_one(f"/backups/{backup_id}")
        return None if answer is None else inner(answer)

    def backups(self, query: JsonMapping | None = None) -> Iterator[JsonObject]:
        """Yield the backups of the project that a query selects."""
        return self.listed("/backups/detail", "backups", query)

    def restore_backup(self, backup_id: str, values: JsonMapping) -> JsonObject:
        """Request that a backup is restored; return the id of the volume."""
        return inner(self.post(f"/backups/{backup_id}/restore", {"restore": values}))

    def delete_backup(self, backup_id: str) -> bool:
        """Request the deletion of a backup. Return whether it existed."""
        return self.delete(f"/backups/{backup_id}")

    # Types, quotas

    @property
    def types(self) -> VolumeTypes:
        """Volume types, and their encryption."""
        return VolumeTypes(self)

    @property
    def qos_specs(self) -> QoSSpecs:
        """Specifications of the quality of service."""
        return QoSSpecs(self)

    def _act(
        self, volume_id: str, action: str, arguments: JsonMapping, *, microversion: str | None = None
    ) -> None:
        self.post(f"/volumes/{volume_id}/action", {action: arguments}, microversion=microversion)


class VolumeTypes:
    """Volume types, their extra specs, the projects that may use a private type, and encryption."""

    def __init__(self, api: ServiceApi) -> None:
        """Send no request yet."""
        self._api = api

    def create(self, volume_type: JsonMapping) -> JsonObject:
        """Create a volume type."""
        return inner(self._api.post("/types", {"volume_type": volume_type}))

    def get(self, type_id: str) -> JsonObject | None:
        """Return a volume type, None if it does not exist."""
        answer = self._api.find_one(f"/types/{type_id}")
        return None if answer is None else inner(answer)

    def listed(self) -> Iterator[JsonObject]:
        """Yield the volume types, private ones included for administrators."""
        return self._api.listed("/types", "volume_types", {"is_public": "none"})

    def update(self, type_id: str, values: JsonMapping) -> None:
        """Change the name, the description or whether the type is public."""
        self._api.put(f"/types/{type_id}", {"volume_type": values})

    def delete(self, type_id: str) -> bool:
        """Delete a volume type. Return whether it existed."""
        return self._api.delete(f"/types/{type_id}")

    def specs(self, type_id: str) -> JsonObject:
        """Return the extra specs."""
        specs: JsonObject = self._api.get(f"/types/{type_id}/extra_specs").get("extra_specs") or {}
        return specs

    def set_specs(self, type_id: str, specs: JsonMapping) -> None:
        """Add or change extra specs."""
        self._api.post(f"/types/{type_id}/extra_specs", {"extra_specs": specs})

    def delete_spec(self, type_id: str, key: str) -> bool:
        """Remove an extra spec. Return whether it existed."""
        return self._api.delete(f"/types/{type_id}/extra_specs/{key}")

    def projects(self, type_id: str) -> set[str]:
        """Return the projects that may use a private type."""
        answer = self._api.find_one(f"/types/{type_id}/os-volume-type-access") or {}
        return {access["project_id"] for access in answer.get("volume_type_access") or ()}

    def allow(self, type_id: str, project_id: str) -> None:
        """Allow a project to use a private type."""
        self._api.post(f"/types/{type_id}/action", {"addProjectAccess": {"project": project_id}})

    def deny(self, type_id: str, project_id: str) -> None:
        """Withdraw a private type from a project."""
        self._api.post(f"/types/{type_id}/action", {"removeProjectAccess": {"project": project_id}})

    def encryption(self, type_id: str) -> JsonObject | None:
        """Return the encryption of a type, None without one."""
        answer = self._api.find_one(f"/types/{type_id}/encryption")
        return answer if answer and answer.get("volume_type_id") else None

    def encrypt(self, type_id: str, encryption: JsonMapping) -> JsonObject:
        """Add encryption to a type."""
        return inner(self._api.post(f"/types/{type_id}/encryption", {"encryption": encryption}))

    def update_encryption(self, type_id: str, encryption_id: str, encryption: JsonMapping) -> None:
        """Change the encryption of a type."""
        self._api.put(f"/types/{type_id}/encryption/{encryption_id}", {"encryption": encryption})

    def delete_encryption(self, type_id: str, encryption_id: str) -> bool:
        """Remove the encryption of a type. Return whether it existed."""
        return self._api.delete(f"/types/{type_id}/encryption/{encryption_id}")


class QoSSpecs:
    """Specifications of the quality of service, and their associations with volume types."""

    def __init__(self, api: ServiceApi) -> None:
        """Send no request yet."""
        self._api = api

    def create(self, name: str, specs: JsonMapping) -> JsonObject:
        """Create specs."""
        return inner(self._api.post("/qos-specs", {"qos_specs": {"name": name, **specs}}))

    def get(self, specs_id: str) -> JsonObject | None:
        """Return specs, None if they do not exist."""
        answer = self._api.find_one(f"/qos-specs/{specs_id}")
        return None if answer is None else dict(answer.get("qos_specs") or {})

    def listed(self) -> Iterator[JsonObject]:
        """Yield all specs."""
        return self._api.listed("/qos-specs", "qos_specs")

    def set_keys(self, specs_id: str, specs: JsonMapping) -> None:
        """Add or change keys."""
        self._api.put(f"/qos-specs/{specs_id}", {"qos_specs": specs})

    def delete_keys(self, specs_id: str, keys: Sequence[str]) -> None:
        """Remove keys."""
        self._api.put(f"/qos-specs/{specs_id}/delete_keys", {"keys": list(keys)})

    def delete(self, specs_id: str) -> bool:
        """Delete specs. Return whether they existed."""
        return self._api.delete(f"/qos-specs/{specs_id}")

    def types(self, specs_id: str) -> set[str]:
        """Return the volume types that the specs are associated with."""
        answer: Any = self._api.find_one(f"/qos-specs/{specs_id}/associations") or {}
        return {association["id"] for association in answer.get("qos_associations") or ()}

    def associate(self, specs_id: str, type_id: str) -> None:
        """Associate specs with a volume type."""
        self._api.get(f"/qos-specs/{specs_id}/associate", {"vol_type_id": type_id})

    def disassociate(self, specs_id: str, type_id: str) -> None:
        """Withdraw specs from a volume type, if they exist."""
        try:
            self._api.get(f"/qos-specs/{specs_id}/disassociate", {"vol_type_id": type_id})
        except ProviderNotFound:
            return
