"""OS::Cinder::QoSSpecs. The physical name is unique: `find` looks it up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from orchestrator.clients.openstack.block_storage import QOS_SPECS
from orchestrator.json_types import JsonObject
from orchestrator.resources.base import Context, Property, Unique, Value
from orchestrator.resources.openstack.cinder.base import block_storage
from orchestrator.resources.openstack.collection_type import CollectionType, Field
from orchestrator.resources.openstack.creation_marks import EqualValues
from orchestrator.resources.openstack.settings import as_texts, same_texts


class QoSSpecs(CollectionType):
    """Specifications of the quality of service of volumes. Requires the role of an administrator."""

    name = "OS::Cinder::QoSSpecs"
    support_version = "7.0.0"
    service = "cinder"
    endpoint_type = "volumev3"
    collection = QOS_SPECS
    mark = EqualValues((), ("name",))
    fields = {"specs": Field(from_api=lambda specs: dict(specs or {}), equal=same_texts, sent=False)}
    omits_null = True
    unique = Unique((("name",),), "delete", searched=True)
    properties: ClassVar[Mapping[str, Property]] = {
        "name": Property("string", "The name of the specifications, unique in the cloud."),
        "specs": Property("map", "The specifications.", required=True, update_allowed=True),
    }

    def new_values(self, ctx: Context, props: Mapping[str, Value]) -> JsonObject:
        """Return the name and the specs."""
        return {**super().new_values(ctx, props), **as_texts(props["specs"])}

    def changed_values(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> JsonObject:
        """Remove keys; return the specs if they differ."""
        cinder, wanted = block_storage(ctx), as_texts(props["specs"])
        actual = (cinder.find(QOS_SPECS, physical_id) or {}).get("specs") or {}
        if removed := sorted(actual.keys() - wanted.keys()):
            cinder.delete_keys(physical_id, removed)
        return wanted if actual != wanted else {}
