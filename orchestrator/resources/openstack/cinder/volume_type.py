"""OS::Cinder::VolumeType.

The name is unique in cinder, and cinder keeps no token: `find` takes a type with the name and the same
visibility for a lost create's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from orchestrator.clients.openstack.block_storage import VOLUME_TYPES
from orchestrator.json_types import JsonObject
from orchestrator.resources.base import Context, Property, Unique, Value
from orchestrator.resources.openstack.collection_type import Field, or_empty
from orchestrator.resources.openstack.creation_marks import EqualValues
from orchestrator.resources.openstack.settings import both_blank_or_equal
from orchestrator.resources.openstack.specs_and_access import PROJECTS_FIELD, SPECS_FIELD, Access, SpecsType
from orchestrator.schema.constraints import Custom
from orchestrator.schema.translation import Resolve, Rule


class VolumeType(SpecsType):
    """A type of volumes, with requirements of the backend. Requires the role of an administrator."""

    name = "OS::Cinder::VolumeType"
    support_version = "2015.1"
    service = "cinder"
    endpoint_type = "volumev3"
    collection = VOLUME_TYPES
    mark = EqualValues((), ("name", "is_public"))
    reports_unset = True
    omits_null = True
    noun = "volume type"
    specs_path = "extra_specs"
    access = Access(
        "os-volume-type-access",
        "volume_type_access",
        "project_id",
        "project",
        "addProjectAccess",
        "removeProjectAccess",
    )
    public_key = "is_public"
    specs_property = "metadata"
    projects_property = "projects"
    unique = Unique((("name",),), "rename", searched=True)
    fields = {
        "description": Field(to_api=or_empty, equal=both_blank_or_equal),
        "is_public": Field(from_api=lambda public: public is not False),
        "metadata": SPECS_FIELD,
        "projects": PROJECTS_FIELD,
    }
    properties: ClassVar[Mapping[str, Property]] = {
        "name": Property("string", "The name of the type.", required=True, update_allowed=True),
        "metadata": Property("map", "Extra specs: requirements of the backend.", update_allowed=True),
        "is_public": Property(
            "boolean", "Whether every project may use the type.", default=True, update_allowed=True
        ),
        "description": Property("string", "A description.", update_allowed=True),
        "projects": Property(
            "list",
            "Projects that may use a private type.",
            default=[],
            update_allowed=True,
            schema=Property("string", "Name or id of a project.", constraints=(Custom("keystone.project"),)),
        ),
    }
    translation: ClassVar[tuple[Rule, ...]] = (Resolve(("projects",), "keystone.project"),)

    def new_values(self, ctx: Context, props: Mapping[str, Value]) -> JsonObject:
        """Return the attributes of a create request, which has another name for `is_public`."""
        values = super().new_values(ctx, props)
        return {**values, "os-volume-type-access:is_public": values.pop("is_public", True)}
