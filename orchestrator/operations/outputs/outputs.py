"""Resolve a stack's outputs, and the metadata of its nested stacks, from the stored state of its resources,
at each read. An error in an output does not affect other outputs (docs/internals/hot-language.md §11).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

import orjson

from orchestrator.engine.validation.secret_places import secrets_of
from orchestrator.errors import OrchestratorError
from orchestrator.json_types import JsonMapping
from orchestrator.operations.context import OperationContext
from orchestrator.operations.outputs.live_attributes import LiveReader, LiveValues
from orchestrator.operations.resource_context.state import GIVEN_METADATA, proxy
from orchestrator.operations.runtime.caches import FileCache
from orchestrator.operations.runtime.parameter_cache import pseudo_parameters, stored_values
from orchestrator.security.encryption import Cipher
from orchestrator.store.connections.database import Database
from orchestrator.store.stacks import output_inputs
from orchestrator.template.definition import NO_ATTRIBUTES, OutputDefinition, ResourceProxy, StackDefinition
from orchestrator.template.functions import ALL
from orchestrator.template.functions.time_budget import time_budget
from orchestrator.template.secret_values import NO_SECRETS, SecretValues
from orchestrator.template.template import Template

EXPRESSIONS_SECONDS = 20.0  # time budget for the expressions in all outputs of a response
MAX_OUTPUTS_BYTES: Final = 16 * 1024 * 1024  # JSON of all outputs of a response
TOO_LARGE: Final = (
    f"The outputs of the stack have more than {MAX_OUTPUTS_BYTES // 1024**2} MiB altogether. "
    "Request them one by one."
)


@dataclass(frozen=True, slots=True)
class Output:
    """An output; `error` is the reason if it has no value."""

    key: str
    description: str
    value: Any = None
    error: str | None = None
    secret: bool = False  # its value contains a secret


class OutputInputs(Protocol):
    """A stack, or the stored view of a child stack, whose outputs can be resolved."""

    @property
    def id(self) -> int:
        """The id of its row."""

    @property
    def uuid(self) -> Any:
        """Its uuid."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def project_id(self) -> str:
        """Its project."""

    @property
    def revision_id(self) -> int | None:
        """Its desired revision."""


@time_budget(EXPRESSIONS_SECONDS)
def resolve_outputs(
    database: Database,
    cipher: Cipher,
    stack: OutputInputs,
    names: Collection[str] | None = None,
    live: LiveReader | None = None,
) -> list[Output]:
    """Return a stack's outputs in the template's order, or only those named.

    An output that requires a failing output of a nested stack has the same error. `live` reads the live
    attributes that outputs use; without it they have their recorded values, if any.
    """
    return _resolved(database, cipher, stack, names, live)


def _resolved(
    database: Database,
    cipher: Cipher,
    stack: OutputInputs,
    names: Collection[str] | None,
    live: LiveReader | None = None,
) -> list[Output]:
    revision = output_inputs.revision(database, stack.revision_id)
    if revision is None:
        return []
    template = Template.from_outline(revision.outline)
    requested = [output for output in template.outputs.values() if names is None or output.name in names]
    pseudo = pseudo_parameters(str(stack.uuid), stack.name, stack.project_id)
    values = stored_values(revision.parameters, revision.sealed, cipher, pseudo)
    required = {name for output in requested for name in output.requires}
    resource_proxies = proxies(database, cipher, stack, required)
    errors = _nested_output_errors(database, cipher, stack, requested, resource_proxies)
    if live is not None:
        resource_proxies, live_errors = _with_live(live, requested, resource_proxies)
        errors |= live_errors
    files = FileCache(database)

    def view() -> StackDefinition:
        return StackDefinition(
            template.version,
            values,
            resource_proxies,
            files.reader(revision.files),
            mappings=template.mappings,
        )

    results, remaining = list[Output](), MAX_OUTPUTS_BYTES
    for output in requested:
        if output.name in errors:
            result = Output(output.name, output.description, error=errors[output.name])
        elif remaining < 0:
            result = Output(output.name, output.description, error=TOO_LARGE)
        else:
            result = _resolve(output, view())
            remaining -= len(orjson.dumps(result.value, default=str))
            if remaining < 0:
                result = Output(output.name, output.description, error=TOO_LARGE)
        results.append(result)
    return results


def _with_live(
    reader: LiveReader, outputs: Iterable[OutputDefinition], proxies: Mapping[str, ResourceProxy]
) -> tuple[dict[str, ResourceProxy], dict[str, str]]:
    """Return the resources with their live attributes, and the errors of outputs whose live attributes could
    not be read.
    """
    used: dict[str, set[str]] = {}
    for output in outputs:
        for name, attributes in output.dep_attrs.items():
            used.setdefault(name, set()).update(attributes)
    read = reader.read(used) if used else {}
    errors = {
        output.name: read[name].error
        for output in outputs
        for name, attributes in output.dep_attrs.items()
        if name in read and _is_affected(attributes, read[name])
    }
    return {name: _merged(proxy, read.get(name)) for name, proxy in proxies.items()}, errors


def _is_affected(used: Collection[str], live: LiveValues) -> bool:
    """Return whether an attribute that an output uses could not be read."""
    everything = ALL in used and live.failed == live.values.keys()
    return bool(live.error) and (everything or not live.failed.isdisjoint(used))


def _merged(proxy: ResourceProxy, live: LiveValues | None) -> ResourceProxy:
    if live is None:
        return proxy
    attributes = {**proxy.attributes, **live.values}
    if not live.secret:
        return replace(proxy, attributes=attributes)
    return replace(proxy, attributes=attributes, secret=True, secrets=None)


def _nested_output_errors(
    database: Database,
    cipher: Cipher,
    stack: OutputInputs,
    outputs: Iterable[OutputDefinition],
    proxies: Mapping[str, ResourceProxy],
) -> dict[str, str]:
    """Return the errors of outputs that require a failing output of a nested stack."""
    used: dict[
        str, dict[str, list[str]]
    ] = {}  # by resource: its null attributes, and the outputs that require them
    for output in outputs:
        for name, attributes in output.dep_attrs.items():
            recorded_attributes = proxies[name].attributes if name in proxies else {}
            for attribute in attributes:
                if attribute in recorded_attributes and recorded_attributes[attribute] is None:
                    used.setdefault(name, {}).setdefault(attribute, []).append(output.name)
    errors: dict[str, str] = {}
    for child in output_inputs.children(database, stack.id, used) if used else ():
        name, null = child.parent_resource, used[child.parent_resource]
        for inner in _resolved(database, cipher, child, null):
            if inner.error is not None:
                error = f"Error in {name} output {inner.key}: {inner.error}"
                errors |= dict.fromkeys(null[inner.key], error)
    return errors


def _resolve(output: OutputDefinition, definition: StackDefinition) -> Output:
    try:
        value = definition.resolve(output.value, f"outputs.{output.name}.value")
    except OrchestratorError as error:
        return Output(output.name, output.description, error=str(error))
    return Output(output.name, output.description, value, secret=definition.used_secret)


def proxies(
    database: Database, cipher: Cipher, stack: OutputInputs, names: Collection[str]
) -> dict[str, ResourceProxy]:
    """Return the resources of these names; a resource without a row counts as not created."""
    if not names:
        return {}
    rows = output_inputs.resources(database, stack.id, names)
    found = {data.name: proxy(data, cipher) for data in rows}
    return {name: found.get(name) or ResourceProxy.uncreated(name) for name in names}


@time_budget(EXPRESSIONS_SECONDS)
def live_metadata(
    context: OperationContext, stack: OutputInputs, resource_id: int
) -> tuple[JsonMapping, SecretValues | None] | None:
    """Return the metadata of a nested stack, evaluated against its current parent, and the secrets in it;
    None: any value may be secret.

    A signal that resizes a group changes no other resource of the group's stack, although the metadata of a
    sibling may list the group's members. Heat evaluates the metadata of nested stacks after each signal. Here
    it is evaluated when it is read, and stored by the next update.

    None if the stored metadata is current: it requires no other resource, was set by a signal, or cannot be
    evaluated.
    """
    found = output_inputs.metadata(context.database, resource_id, stack.revision_id)
    if found is None or not found.body.get("metadata") or not found.requires:
        return None
    data = context.cipher.open(found.sealed).get("data") if found.sealed else found.data
    if GIVEN_METADATA in (data or {}):
        return None
    body, pseudo = found.body, pseudo_parameters(str(stack.uuid), stack.name, stack.project_id)
    view = StackDefinition(
        body["version"],
        stored_values(found.parameters, found.sealed_parameters, context.cipher, pseudo),
        proxies(context.database, context.cipher, stack, set(found.requires)),
        FileCache(context.database).reader(body.get("files", NO_ATTRIBUTES)),
        mappings=body.get("mappings", NO_ATTRIBUTES),
    )
    try:
        made = view.resolve(body["metadata"], f"resources.{found.name}.metadata")
    except OrchestratorError:
        return None
    if not isinstance(made, Mapping):
        return None
    return made, secrets_of(view, body["metadata"], made) if view.used_secret else NO_SECRETS
