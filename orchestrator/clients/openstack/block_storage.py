"""Cinder's API."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Final

from orchestrator.clients.openstack.object_collections import Collection, Collections, inner
from orchestrator.json_types import JsonMapping, JsonObject

ATTACHMENTS: Final = "3.27"  # lists and deletes attachments
ATTACHED_EXTEND: Final = "3.42"  # extends volumes that are in use
MESSAGES: Final = "3.5"  # selects messages for users by object
MAX_MESSAGES: Final = 20
VOLUME_TYPES: Final = Collection(  # private ones included, for administrators
    "/types", "volume_type", "volume_types", query={"is_public": "none"}, by_name=False
)
ENCRYPTIONS: Final = Collection("/types/{parent}/encryption", "encryption", "", id_key="encryption_id")
QOS_SPECS: Final = Collection("/qos-specs", "qos_specs", "qos_specs", by_name=False)
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

    # Specifications of the quality of service

    def delete_keys(self, specs_id: str, keys: Sequence[str]) -> None:
        """Remove keys of specifications."""
        self.put(f"{QOS_SPECS.of(specs_id)}/delete_keys", {"keys": list(keys)})

    def associated_types(self, specs_id: str) -> set[str]:
        """Return the volume types that specifications are associated with."""
        answer: Any = self.find_one(f"{QOS_SPECS.of(specs_id)}/associations") or {}
        return {association["id"] for association in answer.get("qos_associations") or ()}

    def associate(self, specs_id: str, type_id: str) -> None:
        """Associate specifications with a volume type."""
        self.get(f"{QOS_SPECS.of(specs_id)}/associate", {"vol_type_id": type_id})

    def disassociate(self, specs_id: str, type_id: str) -> None:
        """Withdraw specifications from a volume type, if they exist."""
        self.find_one(f"{QOS_SPECS.of(specs_id)}/disassociate", {"vol_type_id": type_id})

    def _act(
        self, volume_id: str, action: str, arguments: JsonMapping, *, microversion: str | None = None
    ) -> None:
        self.post(f"/volumes/{volume_id}/action", {action: arguments}, microversion=microversion)
