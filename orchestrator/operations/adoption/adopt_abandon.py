"""Abandon a stack with all its resources, and adopt a stack (docs/internals/rest-api.md §11.3-4).

An adopt accepts the response of an abandon. It contains secrets in encrypted form, under `sealed`: only this
installation can decrypt them, for the same project. Data from other installations contain secrets in plain
text.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import IO, Final

import orjson

from orchestrator.engine.messages import CheckMessage
from orchestrator.errors import (
    Conflict,
    InvalidRequest,
    InvalidTemplate,
    LimitExceeded,
    Misconfigured,
    NotSupported,
)
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.operations.adoption.export import export
from orchestrator.operations.context import OperationContext
from orchestrator.operations.masking import is_masked
from orchestrator.operations.request_body import StackRequest, checked_tags, reject_nul_bytes
from orchestrator.store.stacks.stacks import StackRow
from orchestrator.store.traversals import children, traversals
from orchestrator.template.environment import Environment
from orchestrator.template.parameters import MASK
from orchestrator.template.parse import Limits, parse

IN_MEMORY: Final = 1 << 20  # bytes of an export in memory; a larger export is spooled to a file
FOREIGN_KEYS: Final = (
    "Invalid adopt data: 'sealed' was encrypted by another installation or for another project. Pass the "
    "hidden parameters with the request, replace the masked values of resource_data, and remove 'sealed'."
)

Adopted = dict[str, JsonObject]  # name -> resource_id, resource_data, metadata, secret


@dataclass(frozen=True, slots=True)
class Abandoned:
    """A stack being abandoned: its document, to be read and closed, and the messages to send."""

    document: IO[bytes]
    messages: list[CheckMessage]


def exported(context: OperationContext, stack: StackRow) -> Iterator[bytes]:
    """Yield a stack's document.

    Raises:
        NotSupported: abandoning is disabled.
        NotFound: the stack is deleted.
    """
    _allowed(context.settings.enable_stack_abandon, "Stack Abandon")
    return export(context.database, context.cipher, stack)


def abandon(context: OperationContext, stack: StackRow) -> Abandoned:
    """Start to abandon a stack with all its resources, without touching them; its document is read first.

    Raises:
        NotSupported: abandoning is disabled.
        NotFound: the stack is deleted.
        Conflict: it changed while it was read.
    """
    document = tempfile.SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115 - closed by who reads it
    try:
        for slice_ in exported(context, stack):
            document.write(slice_)
        with context.database.borrow(hot=False) as db, db.transaction():
            opened = traversals.start_traversal(db, stack.id, "DELETE", expected=stack.traversal, retain=True)
            children.mark_stale(db, stack.id)
        if opened is None:
            raise Conflict(f"Stack {stack.name} was changed by another request. Please try again.")
    except BaseException:
        document.close()
        raise
    document.seek(0)
    return Abandoned(document, [opened.message])


def adoption_request(context: OperationContext, request: StackRequest) -> tuple[StackRequest, Adopted]:
    """Return the create request for a stack to adopt, and the state of its existing resources.

    Parameters, environment, files and tags of the request override the data's.

    Raises:
        NotSupported: adopting is disabled.
        InvalidRequest: the data do not describe a stack.
    """
    _allowed(context.settings.enable_stack_adopt, "Stack Adopt")
    assert request.adopt_stack_data is not None
    data = _parsed(context, request.adopt_stack_data)
    secrets = _opened(context, data.get("sealed"))
    environment = Environment()
    if not request.environment_files:
        environment = Environment.parse(request.environment, Limits.of(context.settings), of_request=True)
    whole = replace(
        request,
        template=data["template"],
        files={**_texts(data, "files"), **request.files},
        environment=_environment(data, secrets, environment),
        tags=request.tags or _tags(data),
        ignore_unknown_parameters=bool(request.environment_files),
        adopt_stack_data=None,
    )
    return whole, _resources(context, data, secrets.get("resources") or {})


def _allowed(enabled: bool, feature: str) -> None:
    if not enabled:
        raise NotSupported(feature)


def _parsed(context: OperationContext, text: str) -> JsonObject:
    settings = context.settings
    limits = replace(Limits.of(settings), max_bytes=settings.max_json_body_size)
    try:
        data = parse(text, limits)
    except (InvalidTemplate, LimitExceeded) as error:
        raise InvalidRequest(f"Invalid adopt data: {error}") from error
    reject_nul_bytes(orjson.dumps(data))  # adoption data may contain NUL where a body cannot
    if not isinstance(data.get("template"), dict | str):
        raise InvalidRequest("Invalid adopt data: 'template'")
    return data


def _opened(context: OperationContext, sealed: object) -> JsonMapping:
    """Return the decrypted secrets of an export of this installation, for the same project."""
    if sealed is None:
        return {}
    try:
        opened = context.cipher.open(str(sealed).encode())
    except Misconfigured as error:
        raise InvalidRequest(FOREIGN_KEYS) from error
    if not isinstance(opened, dict) or opened.get("project_id") != context.caller.project_id:
        raise InvalidRequest(FOREIGN_KEYS)
    return opened


def _environment(data: JsonMapping, secrets: JsonMapping, environment: Environment) -> JsonObject:
    """Return the environment of the data merged with the request's; `secrets` has hidden values."""
    written = {name: body for name, body in _mapping(data, "environment").items() if body is not None}
    stored = Environment.parse(written, of_request=True)
    hidden, hidden_defaults = secrets.get("parameters") or {}, secrets.get("parameter_defaults") or {}
    defaults = {**stored.parameter_defaults, **hidden_defaults, **environment.parameter_defaults}
    parameters = {**_without_masks(stored.parameters), **hidden, **environment.parameters}
    made = {
        "parameters": parameters,
        "parameter_defaults": _without_masks(defaults),
        "resource_registry": {**stored.resource_registry, **environment.resource_registry},
        "event_sinks": list(environment.event_sinks or _decrypted(stored.event_sinks)),
    }
    return {section: value for section, value in made.items() if value}


def _decrypted(sinks: Sequence[JsonMapping]) -> list[JsonMapping]:
    """Return the event sinks in plain text. Masked sinks belong to another stack and must be given again."""
    return [sink for sink in sinks if not any(MASK in str(value) for value in sink.values())]


def _without_masks(values: JsonMapping) -> JsonObject:
    """Return the values that are not masked. Masked values must be given again."""
    return {name: value for name, value in values.items() if value != MASK}


def _resources(
    context: OperationContext, data: JsonMapping, secrets: JsonMapping, parent_path: str = ""
) -> Adopted:
    """Return the state of a stack's resources, recursively for documents of nested stacks."""
    adopted: Adopted = {}
    for name, body in _mapping(data, "resources", parent_path).items():
        path = f"{parent_path}.resources.{name}" if parent_path else f"resources.{name}"
        if not isinstance(body, dict):
            raise InvalidRequest(f"Invalid adopt data: {path} must be a map.")
        whole = {**body, **secrets[name]} if name in secrets else body
        is_stack = "resources" in body  # the parent stack contains its template, so this document may lack it
        physical_id = whole.get("resource_id") or (whole.get("id") if is_stack else None)
        if physical_id is not None and not isinstance(physical_id, str):
            raise InvalidRequest(f"Invalid adopt data: {path}.resource_id must be a string.")
        resource_data, metadata = _mapping(whole, "resource_data", path), _mapping(whole, "metadata", path)
        if name not in secrets and is_masked([resource_data, metadata]):
            raise InvalidRequest(
                f"Invalid adopt data: values of {path} are masked. Write the plain values, or keep the "
                "exported value of 'sealed'."
            )
        adopted[name] = {
            "resource_id": physical_id or None,
            "data": resource_data,
            "metadata": metadata,
            "secret": name in secrets,
        }
        if is_stack:
            inner = _opened(context, body.get("sealed")).get("resources") or {}
            adopted[name]["nested"] = _resources(context, body, inner, path)
    return adopted


def _mapping(body: JsonMapping, key: str, path: str = "") -> JsonMapping:
    value = body.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        place = f"{path}.{key}" if path else key
        raise InvalidRequest(f"Invalid adopt data: {place} must be a map.")
    return value


def _tags(data: JsonMapping) -> tuple[str, ...]:
    tags = data.get("tags")
    if tags is None:
        return ()
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise InvalidRequest("Invalid adopt data: tags must be a list of strings.")
    for tag in tags:
        if "," in tag:
            raise InvalidRequest(f"Invalid adopt data: the tag {tag} has a comma.")
    return checked_tags(tags)


def _texts(data: JsonMapping, key: str) -> dict[str, str]:
    files = _mapping(data, key)
    for name, text in files.items():
        if not isinstance(text, str):
            raise InvalidRequest(f"Invalid adopt data: the content of the file {name} must be a string.")
    return dict(files)
