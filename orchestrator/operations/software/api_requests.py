"""Operations on software configs and deployments, for users and agents (docs/internals/rest-api.md §12).

Changes to a deployment that belongs to a resource reach the resource as a signal (`type_store.py`).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Final

from orchestrator.engine.physical_names import physical_name
from orchestrator.errors import (
    UNREACHABLE_ERRORS,
    AccessDenied,
    Conflict,
    Diagnostic,
    InvalidRequest,
    InvalidTemplate,
    InvalidValue,
    NotFound,
    Unavailable,
)
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.operations.context import Body, OperationContext
from orchestrator.operations.keystone.stack_users import ReadOnlyStackUser
from orchestrator.operations.masking import masked
from orchestrator.operations.quotas.room import SOFTWARE_CONFIGS, SOFTWARE_DEPLOYMENTS, STORED_BYTES
from orchestrator.operations.request_body import read_object
from orchestrator.operations.software.type_store import (
    DeploymentStore,
    isotime,
    large_configs,
    listed,
    not_found,
    referenced,
    room_for,
    sealed,
    shown,
    signal_resource,
)
from orchestrator.resources.base import ResourceType
from orchestrator.resources.builtin.server_metadata import DEPLOYMENTS
from orchestrator.resources.builtin.software_io import read_inputs, read_outputs
from orchestrator.resources.software_api import ConfigDraft
from orchestrator.resources.stack_context import StackLocation
from orchestrator.resources.verbs.contexts import read_context
from orchestrator.schema.properties import PropertyFault
from orchestrator.store import software as store
from orchestrator.store.access.quotas import enforce
from orchestrator.store.software import Db, DeploymentRow
from orchestrator.store.stacks.resources import ResourceRow
from orchestrator.store.stacks.stacks import StackRow
from orchestrator.template.parse import Limits, check_size

MAX_PROJECT_CHARACTERS: Final = 64
TEXTS: Final = ("server_id", "config_id", "action", "status", "status_reason", "stack_user_project_id")
MAPS: Final = ("input_values", "output_values")


class SoftwareNotFound(NotFound):
    """The project has no such config or deployment."""

    heat_type = "NotFound"

    def __init__(self, entity: str, id_: str) -> None:
        """`entity` is Heat's term: Software config, Deployment."""
        self.kind, self.name = entity, id_
        Exception.__init__(self, not_found(entity, id_))


class Referenced(Conflict):
    """A deployment refers to the config."""

    heat_type = "InvalidRestrictedAction"

    def __init__(self, config_id: str) -> None:
        """Name it."""
        super().__init__(referenced(config_id))


# Configs.


def list_configs(
    context: OperationContext, limit: int | None, marker: str | None, *, everywhere: bool = False
) -> list[JsonObject]:
    """Return configs after `marker`, newest first; if `everywhere`, of all projects."""
    scope = None if everywhere else context.caller.scope
    with context.database.borrow(hot=False) as db:
        rows = store.list_configs(db, scope, limit, marker)
    return [listed(row) | ({"project": row.project_id} if scope is None else {}) for row in rows]


def show_config(context: OperationContext, config_id: str) -> JsonObject:
    """Return a config.

    Raises:
        SoftwareNotFound: it does not exist.
    """
    with context.database.borrow(hot=False) as db:
        row = store.get_config(db, context.caller.scope, config_id)
    if row is None:
        raise SoftwareNotFound("Software config", config_id)
    return shown(context.cipher, row)


def create_config(context: OperationContext, body: Body) -> JsonObject:
    """Create a config; return it.

    Raises:
        InvalidRequest, InvalidTemplate: the request is not valid.
        LimitExceeded: the project has the maximum number or size of configs.
    """
    draft, config_id = _draft(_object(context, body)), str(uuid.uuid4())
    project_id = context.caller.project_id
    values = {"uuid": config_id, "project_id": project_id, "secret": False, "derived": False}
    row = {**values, **sealed(context.cipher, draft)}
    size = context.require_room(STORED_BYTES, len(row["sealed"]))
    with context.database.borrow(hot=False) as db, db.transaction():
        limits = [large_configs(db, context.settings, row), size]
        if not context.caller.is_admin:
            limits.append(room_for(db, context.settings, SOFTWARE_CONFIGS, project_id))
        store.add_config(db, row)
        enforce(db, *limits)
    return show_config(context, config_id)


def delete_config(context: OperationContext, config_id: str) -> None:
    """Delete a config.

    Raises:
        SoftwareNotFound: it does not exist.
        Referenced: a deployment refers to it.
    """
    with context.database.borrow(hot=False) as db, db.transaction():
        removed = store.remove_config(db, context.caller.project_id, config_id)
    if removed is None:
        raise SoftwareNotFound("Software config", config_id)
    if not removed:
        raise Referenced(config_id)


def _draft(request: JsonMapping) -> ConfigDraft:
    faults = [
        _fault(f"'{name}' must be a string.", name)
        for name in ("name", "group")
        if not isinstance(request.get(name), str | None)
    ]
    inputs, outputs = request.get("inputs") or [], request.get("outputs") or []
    listing = [*_listed(inputs, "inputs"), *_listed(outputs, "outputs")]
    faults += listing
    if not listing:
        inputs, input_faults = read_inputs(inputs)
        outputs, output_faults = read_outputs(outputs)
        faults += map(_of, [*input_faults, *output_faults])
    if faults:
        raise InvalidTemplate(faults)
    options = request.get("options")
    return ConfigDraft(
        request.get("name"),
        request.get("group"),
        request.get("config"),
        inputs,
        outputs,
        {} if options is None else options,
    )


def _listed(value: object, name: str) -> Iterable[Diagnostic]:
    """Yield the faults of a value that must be a list of maps."""
    if not isinstance(value, list):
        yield _fault("Software Config I/O Schema must be in a list", name, "TypeError")
    elif not all(isinstance(item, dict) for item in value):
        yield _fault("Software Config I/O Schema must be a dict", name, "TypeError")


def _of(fault: PropertyFault) -> Diagnostic:
    return _fault(f"Property error: {fault.path}: {fault.message}", fault.where, hint=fault.hint)


def _fault(message: str, path: str, heat_type: str = "ValueError", hint: str = "") -> Diagnostic:
    return Diagnostic("software-config", message, path, heat_type=heat_type, hint=hint)


# Deployments.


def list_deployments(context: OperationContext, server_id: str | None) -> list[JsonObject]:
    """Return the deployments, oldest first; of a single server, if given."""
    with context.database.borrow(hot=False) as db:
        rows = store.list_deployments(db, context.caller.project_id, server_id)
    return [_shown(context, row) for row in rows]


def metadata(context: OperationContext, server_id: str) -> list[JsonMapping]:
    """Return the configs that a server has to apply: for its agent as the agent needs them, for other callers
    with masked secrets.

    Raises:
        AccessDenied: the caller is the agent of another server.
    """
    bearer, database = context.caller.bearer, context.database
    if bearer is not None and bearer.gave.physical_id != server_id:
        raise AccessDenied
    place, masks = StackLocation(context.caller.project_id), not is_agent(context)
    software = DeploymentStore(
        database.connect, database, context.cipher, context.settings, place, masks=masks
    )
    return [*software.published(server_id)]


def is_agent(context: OperationContext) -> bool:
    """Whether secrets of a server are in the open for the caller, whose access to the server was checked.

    They are for the credentials of resources. Without authentication an agent has no credentials, and every
    caller may do everything.
    """
    return context.caller.bearer is not None or context.settings.auth == "none"


def machine_metadata(
    context: OperationContext,
    stack: StackRow,
    row: ResourceRow,
    resource_type: ResourceType,
    shown: JsonMapping | None,
) -> JsonObject:
    """Return the metadata of a resource whose type `publishes` them: decrypted for the agent of the server.

    For other callers `shown` is the declared metadata with masked secrets; the settings of the agent and the
    secrets of deployments are masked.

    Raises:
        Unavailable: the type needs its provider for them, which gives no answer.
    """
    with context.database.borrow(hot=False) as db:
        values = store.values_of(db, row.id)
        users = ReadOnlyStackUser.of(row.id, db, context.cipher, context.settings)
    if values is None or row.physical_id is None:
        return {}
    properties, data, inputs, secret = values
    opened = context.cipher.open(secret.encode()) if secret else {}
    declared = opened.get("metadata", inputs) or {} if shown is None else shown
    ctx = read_context(
        name=row.name,
        physical_name=physical_name(stack.name, row.name, row.uuid, resource_type.physical_name_limit),
        token="",
        properties=opened.get("properties", properties) or {},
        data=opened.get("data", data) or {},
        metadata=declared,
        software=DeploymentStore.at(context, stack, row.name, masks=shown is not None),
        users=users,
    )
    try:
        published = resource_type.published(ctx, row.physical_id)
    except UNREACHABLE_ERRORS as error:
        raise Unavailable(f"The metadata of {row.name} cannot be read at the moment: {error}") from error
    if shown is not None:
        published = {key: value if key == DEPLOYMENTS else masked(value) for key, value in published.items()}
    return {**declared, **published}


def show_deployment(context: OperationContext, deployment_id: str) -> JsonObject:
    """Return a deployment.

    Raises:
        SoftwareNotFound: it does not exist.
    """
    with context.database.borrow(hot=False) as db:
        return _shown(context, _deployment_row(context, db, deployment_id))


def create_deployment(context: OperationContext, body: Body) -> JsonObject:
    """Publish a config for a server; return the deployment.

    Raises:
        InvalidRequest: a field is missing or has the wrong type, or the config does not exist.
        LimitExceeded: the project has the maximum number of deployments.
    """
    request, project_id = _deployment(_object(context, body)), context.caller.project_id
    for name in ("config_id", "server_id"):
        if not request.get(name):
            raise InvalidRequest(f"A software deployment needs a '{name}'.")
    owner = request.get("stack_user_project_id")
    if owner is not None and len(owner) > MAX_PROJECT_CHARACTERS:
        raise InvalidValue('"stack_user_project_id" should be no more than 64 characters')
    deployment_id = str(uuid.uuid4())
    values = {"input_values": request.get("input_values") or {}, "output_values": None}
    values_sealed = context.cipher.seal(values)
    size = context.require_room(STORED_BYTES, len(values_sealed))
    with context.database.borrow(hot=False) as db, db.transaction():
        is_admin = context.caller.is_admin
        limit = None if is_admin else room_for(db, context.settings, SOFTWARE_DEPLOYMENTS, project_id)
        store.add_deployment(
            db,
            {
                **dict.fromkeys(("stack_id", "resource_id", "operation")),
                **{name: request.get(name) for name in TEXTS},
                "uuid": deployment_id,
                "project_id": project_id,
                "config_id": _config_row(context, db, request["config_id"]),
                "sealed": values_sealed,
                "secret": False,
            },
        )
        enforce(db, limit, size)
    return show_deployment(context, deployment_id)


def update_deployment(context: OperationContext, deployment_id: str, body: Body) -> JsonObject:
    """Change the fields that are given and not null; signal the deployment's resource.

    Raises:
        SoftwareNotFound: it does not exist.
        InvalidRequest: a field has the wrong type, or the config does not exist.
    """
    show_deployment(context, deployment_id)
    changes = {name: value for name, value in _deployment(_object(context, body)).items() if value}
    size = context.require_room(STORED_BYTES, body.size)
    with context.database.borrow(hot=False) as db, db.transaction():
        row = _deployment_row(context, db, deployment_id, lock=True)
        values = context.cipher.open(row.sealed)
        values |= {name: changes[name] for name in MAPS if name in changes}
        written = {**row.values(), "sealed": context.cipher.seal(values)}
        written |= {name: changes[name] for name in ("action", "status", "status_reason") if name in changes}
        if "config_id" in changes:
            written["config_id"] = _config_row(context, db, changes["config_id"])
        store.write_deployment(db, written)
        if written["config_id"] != row.config_id:
            store.drop_derived(db, row.config_id)
        _notify_resource(context, db, row)
        enforce(db, size if len(written["sealed"]) > len(row.sealed) else None)
    return show_deployment(context, deployment_id)


def delete_deployment(context: OperationContext, deployment_id: str) -> None:
    """Delete a deployment; signal its resource.

    Raises:
        SoftwareNotFound: it does not exist.
    """
    with context.database.borrow(hot=False) as db, db.transaction():
        row = _deployment_row(context, db, deployment_id, lock=True)
        store.remove_deployment(db, row.id)
        store.drop_derived(db, row.config_id)
        _notify_resource(context, db, row)


def _notify_resource(context: OperationContext, db: Db, row: DeploymentRow) -> None:
    if row.stack_id is not None and row.resource_id is not None:
        signal_resource(db, context.cipher, row.stack_id, row.resource_id)


def _deployment_row(
    context: OperationContext, db: Db, deployment_id: str, *, lock: bool = False
) -> DeploymentRow:
    row = store.get_deployment(db, context.caller.project_id, deployment_id, lock=lock)
    if row is None:
        raise SoftwareNotFound("Deployment", deployment_id)
    return row


def _config_row(context: OperationContext, db: Db, config_id: str) -> int:
    """Return the row of the config for a deployment."""
    row = store.get_config(db, context.caller.project_id, config_id, keep=True)
    if row is None:
        raise InvalidValue(f"Config with id {config_id} not found")
    return row.id


def _shown(context: OperationContext, row: DeploymentRow) -> JsonObject:
    values = context.cipher.open(row.sealed)
    inputs = values["input_values"]
    body = {
        "id": row.uuid,
        "server_id": row.server_id,
        "config_id": row.config_uuid,
        "input_values": masked(inputs) if row.secret and inputs else inputs,
        "output_values": values["output_values"],
        "action": row.action,
        "status": row.status,
        "status_reason": row.status_reason,
        "creation_time": isotime(row.created_at),
    }
    if row.updated_at is not None:
        body["updated_time"] = isotime(row.updated_at)
    return body


def _object(context: OperationContext, body: Body) -> JsonObject:
    """Return the object in the body. Its depth is limited like a template's, so that it can be stored.

    Raises:
        InvalidRequest: it is not an object, or nested too deeply.
    """
    text = body.read()
    if not text.startswith(b"{"):
        raise InvalidRequest("The request body must be a JSON object.")
    document = read_object(text)
    try:
        check_size(document, Limits.of(context.settings), "request")
    except InvalidTemplate as error:
        raise InvalidRequest(f"The request cannot be accepted: {error}") from error
    return document


def _deployment(request: JsonMapping) -> JsonMapping:
    """Return the validated fields.

    Raises:
        InvalidRequest: with every field of the wrong type.
    """
    faults = [
        f"'{name}' must be a string." for name in TEXTS if not isinstance(request.get(name), str | None)
    ]
    faults += [f"'{name}' must be a map." for name in MAPS if not isinstance(request.get(name), dict | None)]
    if faults:
        raise InvalidRequest(" ".join(faults))
    return request
