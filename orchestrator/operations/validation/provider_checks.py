"""The provider checks of a request: `ResourceType.inquire`, called as the request's user."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import orjson

from orchestrator.clients.keystone.cloud_session import Cloud
from orchestrator.engine.validation.template import Inquire
from orchestrator.errors import UNREACHABLE_ERRORS, ProviderError
from orchestrator.json_types import JsonMapping
from orchestrator.logs import logger
from orchestrator.operations.context import OperationContext
from orchestrator.operations.resource_context.operation import with_provider_access
from orchestrator.resources.base import CALL_SECONDS, Fault, ResourceType
from orchestrator.resources.verbs.contexts import operation_context
from orchestrator.template.environment import Environment

log = logger()

INQUIRY_SECONDS: Final = 60.0  # for all provider checks of a request
MIN_CALL_SECONDS: Final = 0.1


@dataclass(frozen=True, slots=True)
class _RequestContext:
    """The context of resource types during validation: the requested stack."""

    pseudo: Environment
    texts: Mapping[str, str]
    name: str

    def file(self, name: str) -> str | None:
        """Return the content of a file."""
        return self.texts.get(name)

    def files(self) -> Mapping[str, str]:
        """Return all files."""
        return self.texts

    def environment(self, parameters: JsonMapping) -> Environment:
        """Return the environment of a stack nested in the resource."""
        return self.pseudo.child(self.name, parameters, None)


def provider_checks(
    context: OperationContext, environment: Environment, files: Mapping[str, str], cloud: Cloud | None
) -> Inquire:
    """Return a function that runs the provider checks of resources, within a total time budget. Equal
    properties of a resource are checked once.
    """
    ends_at = time.monotonic() + INQUIRY_SECONDS
    known: dict[tuple[str, str, bytes], Sequence[Fault]] = {}

    def inquire(name: str, resource_type: ResourceType, properties: JsonMapping) -> Sequence[Fault]:
        if type(resource_type).inquire is ResourceType.inquire:
            return ()
        shown = orjson.dumps(properties, default=str, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)
        key = (name, resource_type.name, shown)
        if key not in known:
            known[key] = ask(name, resource_type, properties)
        return known[key]

    def ask(name: str, resource_type: ResourceType, properties: JsonMapping) -> Sequence[Fault]:
        remaining = max(MIN_CALL_SECONDS, ends_at - time.monotonic())
        ctx = operation_context(
            name=name,
            physical_name=name,
            token="",
            action="CREATE",
            properties=properties,
            deadline_seconds=min(CALL_SECONDS, remaining),
            stack_context=_RequestContext(environment, files, name),
        )
        ctx = with_provider_access(ctx, context.settings, context.caller.project_id, cloud)
        try:
            return resource_type.inquire(ctx, properties)
        except UNREACHABLE_ERRORS as error:  # no fault is known; the create waits for the provider
            log.warning("inquiry_failed", resource=name, type=resource_type.name, error=str(error))
        except ProviderError as error:
            return (Fault(str(error)),)
        return ()

    return inquire
