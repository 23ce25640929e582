"""Letting a stack go with everything in it, and taking one over (docs/internals/rest-api.md §11.3-4).

What an abandoned stack's answer holds is what adopting it takes. Secrets are in it encrypted, under `sealed`:
this installation opens them again for the project they belonged to. Data from elsewhere have them in clear.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import IO, Any, Final

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
from orchestrator.operations.adoption.export import export
from orchestrator.operations.context import OperationContext
from orchestrator.operations.request_body import StackRequest, checked_tags, reject_nul_bytes
from orchestrator.store.stacks.stacks import StackRow
from orchestrator.store.traversals import children, traversals
from orchestrator.template.environment import Environment
from orchestrator.template.parameters import MASK
from orchestrator.template.parse import Limits, parse

IN_MEMORY: Final = 1 << 20  # bytes of an export; a larger one waits for its reader in a file
FOREIGN_KEYS: Final = (
    "Invalid adopt data: 'sealed' was written by another installation or for another project. Give hidden "
    "parameters with the request, write the masked values of resource_data in clear, and leave 'sealed' out."
)

Adopted = dict[str, dict[str, Any]]  # name -> resource_id, resource_data, metadata, secret


@dataclass(frozen=True, slots=True)
class Abandoned:
    """A stack that is being let go of: its document, to be read and closed, and what to enqueue."""

    document: IO[bytes]
    rings: list[CheckMessage]


def exported(context: OperationContext, stack: StackRow) -> Iterator[bytes]:
    """Yield a stack's document.

    Raises:
        NotSupported: the installation does not let stacks go.
        NotFound: it is gone.
    """
    _allowed(context.settings.enable_stack_abandon, "Stack Abandon")
    return export(context.database, context.cipher, stack)


def abandon(context: OperationContext, stack: StackRow) -> Abandoned:
    """Begin to let go of a stack and everything in it, touching nothing; its document is read before.

    Raises:
        NotSupported: the installation does not let stacks go.
        NotFound: it is gone.
        Conflict: it was changed while it was read.
    """
    document = tempfile.SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115 - closed by who reads it
    try:
        for slice_ in exported(context, stack):
            document.write(slice_)
        with context.database.connect() as db, db.transaction():
            opened = traversals.start_traversal(db, stack.id, "DELETE", expected=stack.traversal, retain=True)
            children.disturb(db, stack.id)
        if opened is None:
            raise Conflict(f"Stack {stack.name} was changed at this moment. Please try again.")
    except BaseException:
        document.close()
        raise
    document.seek(0)
    return Abandoned(document, [opened.ring])


def adoption_request(context: OperationContext, request: StackRequest) -> tuple[StackRequest, Adopted]:
    """Return the request that a stack to take over comes to, and what is there of its resources.

    What the request says besides, parameters, environment, files, tags, wins over what the data say.

    Raises:
        NotSupported: the installation takes nothing over.
        InvalidRequest: the data are not a stack's.
    """
    _allowed(context.settings.enable_stack_adopt, "Stack Adopt")
    assert request.adopt_stack_data is not None
    data = _parsed(context, request.adopt_stack_data)
    secrets = _opened(context, data.get("sealed"))
    given = Environment()
    if not request.environment_files:
        given = Environment.parse(request.environment, Limits.of(context.settings), of_request=True)
    whole = replace(
        request,
        template=data["template"],
        files={**_texts(data, "files"), **request.files},
        environment=_environment(data, secrets.get("parameters") or {}, given),
        tags=request.tags or _tags(data),
        ignore_unknown_parameters=bool(request.environment_files),
        adopt_stack_data=None,
    )
    return whole, _resources(context, data, secrets.get("resources") or {})


def _allowed(enabled: bool, feature: str) -> None:
    if not enabled:
        raise NotSupported(feature)


def _parsed(context: OperationContext, text: str) -> dict[str, Any]:
    settings = context.settings
    limits = replace(Limits.of(settings), max_bytes=settings.max_json_body_size)
    try:
        data = parse(text, limits)
    except (InvalidTemplate, LimitExceeded) as error:
        raise InvalidRequest(f"Invalid adopt data: {error}") from error
    reject_nul_bytes(orjson.dumps(data))  # here it may be written as no body can have it
    if not isinstance(data.get("template"), dict | str):
        raise InvalidRequest("Invalid adopt data: 'template'")
    return data


def _opened(context: OperationContext, sealed: Any) -> Mapping[str, Any]:
    """Return what was secret in an export of ours, for the project that it is of."""
    if sealed is None:
        return {}
    try:
        opened = context.cipher.open(str(sealed).encode())
    except Misconfigured as error:
        raise InvalidRequest(FOREIGN_KEYS) from error
    if not isinstance(opened, dict) or opened.get("project_id") != context.caller.project_id:
        raise InvalidRequest(FOREIGN_KEYS)
    return opened


def _environment(data: Mapping[str, Any], hidden: Mapping[str, Any], given: Environment) -> dict[str, Any]:
    """Return the environment of the data with the request's on top."""
    written = {name: body for name, body in _mapping(data, "environment").items() if body is not None}
    stored = Environment.parse(written, of_request=True)
    defaults = {**stored.parameter_defaults, **given.parameter_defaults}
    parameters = {**_without_masks(stored.parameters), **hidden, **given.parameters}
    made = {
        "parameters": parameters,
        "parameter_defaults": _without_masks(defaults),
        "resource_registry": {**stored.resource_registry, **given.resource_registry},
        "event_sinks": list(given.event_sinks or _decrypted(stored.event_sinks)),
    }
    return {section: value for section, value in made.items() if value}


def _decrypted(sinks: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the event sinks that are there in clear: who was told of another stack is to be given again."""
    return [sink for sink in sinks if not any(MASK in str(value) for value in sink.values())]


def _without_masks(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that are there: what is masked is to be given again."""
    return {name: value for name, value in values.items() if value != MASK}


def _resources(
    context: OperationContext, data: Mapping[str, Any], secrets: Mapping[str, Any], around: str = ""
) -> Adopted:
    """Return what is there of a stack's resources; of one that is a document itself, what is there of its."""
    found: Adopted = {}
    for name, body in _mapping(data, "resources", around).items():
        path = f"{around}.resources.{name}" if around else f"resources.{name}"
        if not isinstance(body, dict):
            raise InvalidRequest(f"Invalid adopt data: {path} must be a map.")
        whole = {**body, **secrets[name]} if name in secrets else body
        is_stack = "resources" in body  # its template comes with the stack around it, and need not be in it
        physical_id = whole.get("resource_id") or (whole.get("id") if is_stack else None)
        if physical_id is not None and not isinstance(physical_id, str):
            raise InvalidRequest(f"Invalid adopt data: {path}.resource_id must be a text.")
        resource_data, metadata = _mapping(whole, "resource_data", path), _mapping(whole, "metadata", path)
        if name not in secrets and _is_masked([resource_data, metadata]):
            raise InvalidRequest(
                f"Invalid adopt data: values of {path} are masked. Write them in clear, or keep 'sealed' as "
                "it was exported."
            )
        found[name] = {
            "resource_id": physical_id or None,
            "data": resource_data,
            "metadata": metadata,
            "secret": name in secrets,
        }
        if is_stack:
            inner = _opened(context, body.get("sealed")).get("resources") or {}
            found[name]["nested"] = _resources(context, body, inner, path)
    return found


def _is_masked(value: Any) -> bool:
    match value:
        case Mapping():
            return any(_is_masked(item) for item in value.values())
        case list():
            return any(_is_masked(item) for item in value)
        case _:
            return bool(value == MASK)


def _mapping(body: Mapping[str, Any], key: str, path: str = "") -> Mapping[str, Any]:
    value = body.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        place = f"{path}.{key}" if path else key
        raise InvalidRequest(f"Invalid adopt data: {place} must be a map.")
    return value


def _tags(data: Mapping[str, Any]) -> tuple[str, ...]:
    tags = data.get("tags")
    if tags is None:
        return ()
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise InvalidRequest("Invalid adopt data: tags must be a list of texts.")
    for tag in tags:
        if "," in tag:
            raise InvalidRequest(f"Invalid adopt data: the tag {tag} has a comma.")
    return checked_tags(tags)


def _texts(data: Mapping[str, Any], key: str) -> dict[str, str]:
    files = _mapping(data, key)
    for name, text in files.items():
        if not isinstance(text, str):
            raise InvalidRequest(f"Invalid adopt data: the content of the file {name} must be a text.")
    return dict(files)
