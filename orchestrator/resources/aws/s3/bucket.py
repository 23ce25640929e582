"""AWS::S3::Bucket: a container of Swift."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from orchestrator.resources.aws.tags import TAG
from orchestrator.resources.base import Context, Property, Value
from orchestrator.resources.openstack.swift.container_type import (
    DOMAIN_NAME,
    WEBSITE_URL,
    ContainerType,
    swift,
)
from orchestrator.schema.constraints import AllowedValues

ACCESS: Final = (
    "Private",
    "PublicRead",
    "PublicReadWrite",
    "AuthenticatedRead",
    "BucketOwnerRead",
    "BucketOwnerFullControl",
)
EVERYBODY: Final = ".r:*"
# By member of the configuration as a website, the header of Swift's middleware `staticweb`.
WEBSITE: Final = {
    "IndexDocument": "X-Container-Meta-Web-Index",
    "ErrorDocument": "X-Container-Meta-Web-Error",
}


class Bucket(ContainerType):
    """A container with Amazon's access lists. Every change replaces it."""

    name = "AWS::S3::Bucket"
    properties = {
        "AccessControl": Property("string", "Predefined access list.", constraints=(AllowedValues(ACCESS),)),
        "WebsiteConfiguration": Property(
            "map",
            "Configuration as a website.",
            schema={
                "IndexDocument": Property("string", "Name of the index document."),
                "ErrorDocument": Property("string", "Name of the error document."),
            },
        ),
        "Tags": Property("list", "Metadata of the container.", schema=Property("map", "A tag.", schema=TAG)),
    }
    attributes = {"DomainName": DOMAIN_NAME, "WebsiteURL": WEBSITE_URL}

    def headers(self, ctx: Context, props: Mapping[str, Value]) -> dict[str, str]:
        """Return access lists and metadata."""
        project, user = swift(ctx).owner()
        access, owner = props.get("AccessControl"), f"{project}:{user}"
        readers = {"AuthenticatedRead": project, "PublicRead": EVERYBODY, "PublicReadWrite": EVERYBODY}
        writers = {"PublicReadWrite": EVERYBODY}
        website = props.get("WebsiteConfiguration") or {}
        return {
            **{f"X-Container-Meta-S3-Tag-{tag['Key']}": str(tag["Value"]) for tag in props.get("Tags") or ()},
            **{header: str(website[name]) for name, header in WEBSITE.items() if website.get(name)},
            "X-Container-Read": readers.get(str(access), owner),
            "X-Container-Write": writers.get(str(access), owner),
        }

    def not_empty(self, physical_id: str) -> str:
        """Return Heat's words."""
        return f"The bucket you tried to delete is not empty ({physical_id})."
