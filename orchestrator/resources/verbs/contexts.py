"""The contexts of verbs: of an operation, of a read, and of a list. They are built here only.

Each has the fields that a verb may find in this situation.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TypedDict, Unpack

from orchestrator.clients.keystone.cloud_session import Cloud
from orchestrator.clients.provider_calls import ProviderCalls
from orchestrator.clients.region_catalog import Catalog
from orchestrator.resources.software_api import SoftwareStore
from orchestrator.resources.stack_context import (
    RequiredResources,
    StackContext,
    StackLocation,
    StackUsers,
)
from orchestrator.resources.verbs.values import Context, Value

Values = Mapping[str, Value]


class ReadFields(TypedDict, total=False):
    """What a verb that only reads may find in its context, besides the names of the resource."""

    properties: Values
    data: Values
    metadata: Values
    deadline_seconds: float
    secret: bool
    software: SoftwareStore
    project_id: str
    cloud: Cloud | None
    location: StackLocation
    users: StackUsers | None
    attribute_paths: Mapping[str, Collection[tuple[str | int, ...]]]
    listed: Values | None


class OperationFields(TypedDict, total=False):
    """What a verb of an operation may find in its context, besides the names of the resource."""

    elapsed_seconds: float
    properties: Values
    data: Values
    metadata: Values
    deadline_seconds: float
    stack_timeout_seconds: float
    secret: bool
    software: SoftwareStore
    project_id: str
    catalog: Catalog
    cloud: Cloud | None
    stack_context: StackContext | None
    location: StackLocation
    required_resources: RequiredResources
    users: StackUsers | None
    step: str
    used_attributes: frozenset[str]
    early_pending: bool
    copy_first: bool
    calls: ProviderCalls


def operation_context(
    name: str, physical_name: str, token: str, action: str, **fields: Unpack[OperationFields]
) -> Context:
    """Return the context of an operation, which is open, assumed, or a search for its objects."""
    return Context(name, physical_name, token, action, **fields)


def read_context(name: str, physical_name: str, token: str, **fields: Unpack[ReadFields]) -> Context:
    """Return the context of an observation or of attributes, beside operations."""
    return Context(name, physical_name, token, "CHECK", **fields)


def list_context(project_id: str, cloud: Cloud | None) -> Context:
    """Return the context of `list_objects`: the cloud of a project, and no resource. Its requests are in the
    background.
    """
    return Context("", "", "", "CHECK", project_id=project_id, cloud=cloud, listed={})
