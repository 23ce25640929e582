"""The desired state of a resource: its definition, evaluated with the outputs of its requirements."""

from __future__ import annotations

from orchestrator.engine.validation.property_resolution import resolve_properties
from orchestrator.engine.validation.secret_places import secrets_of
from orchestrator.errors import TypeNotPermitted
from orchestrator.json_types import JsonMapping
from orchestrator.operations.resource_context.operation import ResourceOperation
from orchestrator.operations.resource_context.state import DENIED_TYPE, DesiredResource, proxy
from orchestrator.template.definition import NO_ATTRIBUTES, StackDefinition
from orchestrator.template.secret_values import NO_SECRETS, SecretValues, both


def apply_definition(operation: ResourceOperation) -> DesiredResource:
    """Set properties, metadata and requirements as desired, and return the evaluated definition.

    Raises:
        TypeNotPermitted: the author of the definition may not use its type.
        InvalidTemplate: the definition cannot be evaluated, or names an object that does not exist.
        ProviderError: a service does not answer a look-up, or refuses it.
        LimitExceeded: stack or project have no space for the values.
    """
    state, definition = operation.state, operation.visit.definition
    if definition is not None and DENIED_TYPE in definition.body:
        raise TypeNotPermitted(definition.body[DENIED_TYPE])
    desired = operation.desired or _evaluate(operation)
    operation.reserve("definition", _stored(desired.properties, desired.metadata), state.properties)
    state.properties = desired.properties
    if state.given_metadata is None or (desired.metadata or {}) != state.given_metadata:
        state.metadata, state.given_metadata = desired.metadata, None  # else a signal's changes stay
    if desired.secret:  # the attributes still contain the secrets of the earlier definition
        state.hide(desired.secrets)
    state.desired_secrets = desired.secrets
    record_requirements(operation)
    return desired


def _stored(properties: JsonMapping, metadata: object) -> JsonMapping:
    return {"properties": properties, "metadata": metadata} if metadata else properties


def record_requirements(operation: ResourceOperation) -> None:
    """Record the current definition and the digests of its inputs."""
    definition, state = operation.visit.definition, operation.state
    assert definition is not None
    inputs = sorted(operation.visit.inputs)  # by id
    state.definition_id = definition.id
    state.requires = tuple([data.id for data in inputs])
    state.input_digests = tuple([data.value_digest or "" for data in inputs])


def _evaluate(operation: ResourceOperation) -> DesiredResource:
    definition, name = operation.visit.definition, operation.resource.name
    assert definition is not None
    body, view = definition.body, definition_view(operation)
    secrets: SecretValues | None = NO_SECRETS
    if body.get("external_id") is not None and not body.get("properties"):  # none are required
        defaults, _ = operation.resource_type.read_properties({})
        properties = defaults
    else:
        properties, secrets = resolve_properties(
            body, view, operation.resource_type, name, resolve=operation.finder()
        )
    metadata = body.get("metadata")
    if metadata:
        written, before = metadata, view.used_secret
        view.used_secret = False
        metadata = view.resolve(written, f"resources.{name}.metadata")
        if view.used_secret:
            secrets = both(secrets, secrets_of(view, written, metadata))
        view.used_secret = before or view.used_secret
    secret, external = view.used_secret, body.get("external_id")
    if external is not None:
        external = view.resolve(external, f"resources.{name}.external_id")
    external_id = None if external is None else str(external)
    return DesiredResource(properties, metadata, secret, external_id, secrets)


def definition_view(operation: ResourceOperation) -> StackDefinition:
    """Return the stack as the functions in the definition see it."""
    definition, services = operation.visit.definition, operation.services
    assert definition is not None
    body, used = definition.body, definition.dep_attrs
    inputs = sorted(operation.visit.inputs)  # by id
    return StackDefinition(
        body["version"],
        operation.parameters,
        {data.name: proxy(data, services.cipher, used.get(data.name, ())) for data in inputs},
        services.files.reader(body.get("files", NO_ATTRIBUTES)),
        mappings=body.get("mappings", NO_ATTRIBUTES),
    )
