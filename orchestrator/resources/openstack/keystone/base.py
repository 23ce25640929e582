"""The base class of Keystone's types."""

from __future__ import annotations

from typing import ClassVar

from orchestrator.clients.openstack.identity import TOKEN_ATTRIBUTE
from orchestrator.resources.openstack.collection_type import APART, CollectionType, CreationMark
from orchestrator.resources.openstack.creation_marks import TokenInAttribute

CATALOG_NAME = "identity"


class KeystoneType(CollectionType):
    """An object of Keystone. Its requests take effect before they are answered."""

    service = "keystone"
    endpoint_type = CATALOG_NAME
    support_message = "Supported versions: keystone v3"
    common_fields = dict.fromkeys(("roles", "groups", "user", "group"), APART)  # links (`links.py`)
    mark: ClassVar[CreationMark] = TokenInAttribute(TOKEN_ATTRIBUTE, ("name", "domain"))
    reports_fixed = True
    omits_null = True
