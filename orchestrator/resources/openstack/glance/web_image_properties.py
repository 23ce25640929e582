"""The properties of OS::Glance::WebImage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from orchestrator.resources.base import Property
from orchestrator.schema.constraints import AllowedPattern, AllowedValues, Range

_IMAGE_ID: Final = AllowedPattern("[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")

PROPERTIES: Final[Mapping[str, Property]] = {
    "name": Property("string", "Name of the image; names need not be unique."),
    "id": Property("string", "Id of the image. Default: a new UUID."),
    "min_disk": Property(
        "integer", "Size in GB of the smallest disk that can boot it.", default=0, constraints=(Range(0),)
    ),
    "min_ram": Property(
        "integer", "Size in MB of the smallest memory that can boot it.", default=0, constraints=(Range(0),)
    ),
    "protected": Property(
        "boolean", "Whether the image cannot be deleted.", default=False, update_allowed=True
    ),
    "disk_format": Property(
        "string",
        "Format of the disk.",
        required=True,
        constraints=(
            AllowedValues(
                ("ami", "ari", "aki", "vhd", "vhdx", "vmdk", "raw", "qcow2", "vdi", "iso", "ploop")
            ),
        ),
    ),
    "container_format": Property(
        "string",
        "Format of the container.",
        required=True,
        constraints=(AllowedValues(("ami", "ari", "aki", "bare", "ovf", "ova", "docker")),),
    ),
    "location": Property("string", "URL from which Glance downloads the data.", required=True),
    "tags": Property("list", "Tags of the image.", update_allowed=True),
    "architecture": Property("string", "Architecture of the operating system.", update_allowed=True),
    "kernel_id": Property(
        "string",
        "Id of the image with the kernel of an image in the format ami.",
        update_allowed=True,
        constraints=(_IMAGE_ID,),
    ),
    "os_distro": Property(
        "string", "Common name of the operating system, in lower case.", update_allowed=True
    ),
    "os_version": Property("string", "Version of the operating system.", update_allowed=True),
    "owner": Property("string", "Project that owns the image.", update_allowed=True),
    "extra_properties": Property("map", "Further properties of the image.", default={}, update_allowed=True),
    "visibility": Property(
        "string",
        "Who may see the image.",
        default="private",
        update_allowed=True,
        constraints=(AllowedValues(("public", "private", "community", "shared")),),
    ),
    "ramdisk_id": Property(
        "string",
        "Id of the image with the RAM disk of an image in the format ami.",
        update_allowed=True,
        constraints=(_IMAGE_ID,),
    ),
    "active": Property(
        "boolean",
        "Whether the data of the image are available. To change it requires an administrator.",
        default=True,
        update_allowed=True,
    ),
    "members": Property(
        "list",
        "Projects with which the image is shared.",
        update_allowed=True,
        schema=Property("string", "Id of the project."),
    ),
}
