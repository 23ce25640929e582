"""The content of a revision as the request that an update completes."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace

import orjson

from orchestrator.json_types import JsonObject
from orchestrator.operations.context import OperationContext
from orchestrator.operations.request_body import StackRequest, UpdateRequest
from orchestrator.operations.runtime.sealed_parameters import hidden_defaults, hidden_parameters
from orchestrator.operations.validation.observation_policy import kept_policy
from orchestrator.store.stacks import revisions
from orchestrator.store.stacks.revisions import RevisionRow
from orchestrator.store.stacks.stacks import StackRow
from orchestrator.template.environment import Environment
from orchestrator.template.parse import Limits


def complete_request(
    context: OperationContext, stack: StackRow, requested: UpdateRequest, before: RevisionRow
) -> StackRequest:
    """Return the complete request: a PATCH inherits all that it omits."""
    request = replace(
        requested.request,
        stack_name=stack.name,
        disable_rollback=stack.disable_rollback
        if requested.disable_rollback is None
        else requested.disable_rollback,
        timeout_mins=stack.timeout_mins
        if requested.request.timeout_mins is None
        else requested.request.timeout_mins,
        keep_going=stack.keep_going if requested.keep_going is None else requested.keep_going,
        resume=stack.resume if requested.request.resume is None else requested.request.resume,
    )
    if not requested.patch:
        return request
    template = request.template
    if template is None:
        text = b"".join(revisions.read_content(context.database, before.template_hash))
        template = orjson.loads(text)
    files = _files(context, before, request.files)
    return replace(
        request,
        template=template,
        files={**files, **request.files},
        environment=_environment(context, requested, before),
        tags=stack.tags if requested.tags_left_out else request.tags,
        ignore_unknown_parameters=True,
    )


def _environment(context: OperationContext, requested: UpdateRequest, before: RevisionRow) -> JsonObject:
    """Return the stored environment merged with the request's, without the parameters to clear."""
    request = requested.request
    opened = hidden_parameters(context.cipher, before.sealed)
    stored = dict(before.environment)
    defaults = hidden_defaults(context.cipher, stored, before.sealed)
    parameters = {
        name: opened.get(name) if value is None else value
        for name, value in (stored.get("parameters") or {}).items()
        if name not in requested.clear_parameters
    }
    environment = (
        Environment()
        if request.environment_files
        else Environment.parse(request.environment, Limits.of(context.settings), of_request=True)
    )
    registry = {**(stored.get("resource_registry") or {}), **environment.resource_registry}
    made = {
        "parameters": {**parameters, **environment.parameters},
        "parameter_defaults": {
            **(stored.get("parameter_defaults") or {}),
            **defaults,
            **environment.parameter_defaults,
        },
        "resource_registry": registry,
        "event_sinks": list(environment.event_sinks) or stored.get("event_sinks") or [],
        "encrypted_param_names": stored.get("encrypted_param_names") or [],
        "observation_policy": environment.observation_policy or kept_policy(context, stored),
    }
    return {section: value for section, value in made.items() if value}


def _files(context: OperationContext, revision: RevisionRow, besides: Container[str] = ()) -> dict[str, str]:
    """Return the texts of a revision's files by name, except for those `besides`."""
    return {
        name: b"".join(revisions.read_content(context.database, bytes.fromhex(hash_))).decode()
        for name, hash_ in revision.files.items()
        if name not in besides
    }
