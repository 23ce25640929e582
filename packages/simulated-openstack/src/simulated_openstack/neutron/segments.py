"""Segments of networks, and metering."""

from __future__ import annotations

from typing import ClassVar

from simulated_openstack.json_types import JsonObject
from simulated_openstack.neutron.family import Family
from simulated_openstack.neutron.fields import REQUIRED, Field
from simulated_openstack.service import Call, new_id


class Segments(Family):
    """Further segments of networks."""

    singular = "segment"
    collection = "segments"
    label = "Segment"
    not_found_kind = "SegmentNotFound"
    admin_only = True
    taggable = False
    indexes: ClassVar[tuple[str, ...]] = ("network_id",)
    fields: ClassVar[dict[str, Field]] = {
        "network_id": Field(REQUIRED, "uuid", put=False),
        "network_type": Field(REQUIRED, "any", put=False),
        "physical_network": Field(None, "any", put=False),
        "segmentation_id": Field(None, "any", put=False),
        "name": Field(None, "any"),
        "description": Field("", "any"),
    }

    def add_first(self, network: JsonObject) -> None:
        """Keep the segment that a network has from its beginning."""
        names = ("physical_network", "network_type", "segmentation_id")
        values = {name: network[f"provider:{name}"] for name in names}
        now = {"created_at": network["created_at"], "updated_at": network["created_at"], "revision_number": 0}
        row = {
            "id": new_id(),
            "network_id": network["id"],
            "name": None,
            "description": None,
            **values,
            **now,
        }
        self.table.save(row)

    def create(self, call: Call, values: JsonObject) -> JsonObject:
        """Keep a new segment."""
        self.family("network").visible(call, values["network_id"])
        row = self.save_new(call, values)
        for name in ("project_id", "tenant_id"):
            row.pop(name)
        return self.table.save(row)

    def is_visible(self, call: Call, row: JsonObject) -> bool:
        """Only an administrator sees segments."""
        del row
        return call.caller.is_admin

    def owned(self, call: Call, id_: str, verb: str) -> JsonObject:
        """Return a segment; segments belong to no project."""
        if not call.caller.is_admin:
            self.disallow(verb)
        return self.found(id_)


class MeteringLabels(Family):
    """Metering labels."""

    singular = "metering_label"
    collection = "metering_labels"
    path = "metering/metering-labels"
    label = "Metering label"
    not_found = "{label} '{id}' does not exist."
    not_found_kind = "MeteringLabelNotFound"
    admin_only = True
    taggable = False
    fields: ClassVar[dict[str, Field]] = {
        "name": Field(),
        "description": Field(),
        "shared": Field(False, "boolean", put=False),
    }

    def create(self, call: Call, values: JsonObject) -> JsonObject:
        """Keep a new label."""
        row = self.save_new(call, values)
        for name in ("created_at", "updated_at", "revision_number"):
            row.pop(name)
        return row

    def remove(self, call: Call, row: JsonObject) -> None:
        """Remove a label with its rules."""
        for rule in self.family("metering_label_rule").table:
            if rule["metering_label_id"] == row["id"]:
                self.family("metering_label_rule").table.remove(rule["id"])
        super().remove(call, row)


class MeteringLabelRules(Family):
    """Rules of metering labels."""

    singular = "metering_label_rule"
    collection = "metering_label_rules"
    path = "metering/metering-label-rules"
    label = "Metering label rule"
    not_found = "{label} '{id}' does not exist."
    not_found_kind = "MeteringLabelRuleNotFound"
    admin_only = True
    taggable = False
    fields: ClassVar[dict[str, Field]] = {
        "metering_label_id": Field(REQUIRED, "uuid", put=False),
        "direction": Field("ingress", "any", put=False),
        "excluded": Field(False, "boolean", put=False),
        "remote_ip_prefix": Field(None, "any", put=False),
        "source_ip_prefix": Field(None, "any", put=False),
        "destination_ip_prefix": Field(None, "any", put=False),
    }

    def create(self, call: Call, values: JsonObject) -> JsonObject:
        """Keep a new rule of a label."""
        self.family("metering_label").found(values["metering_label_id"])
        row = self.save_new(call, values)
        for name in ("created_at", "updated_at", "revision_number", "project_id", "tenant_id"):
            row.pop(name)
        return self.table.save(row)

    def is_visible(self, call: Call, row: JsonObject) -> bool:
        """Only an administrator sees rules."""
        del row
        return call.caller.is_admin

    def owned(self, call: Call, id_: str, verb: str) -> JsonObject:
        """Return a rule; rules belong to no project."""
        if not call.caller.is_admin:
            self.disallow(verb)
        return self.found(id_)
