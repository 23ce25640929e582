"""OS::Mistral::Workflow.

The id of a workflow is its name. The create first stores the key for signals; the workflow is created in a
step. A workflow of the same name that is older than the resource belongs to another user and is a conflict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from orchestrator.clients.openstack.platform_services.workflow import (
    EXECUTIONS,
    WORKFLOWS,
    Workflows,
    decoded,
)
from orchestrator.errors import ProviderConflict, ProviderError
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.resources.base import (
    Attribute,
    Context,
    Created,
    Fault,
    Grant,
    Observation,
    ResourceType,
    Signalled,
    Unique,
    Value,
)
from orchestrator.resources.ec2_signatures import access_key, new_secret, signal_url
from orchestrator.resources.openstack.connection import openstack
from orchestrator.resources.openstack.creation_times import CLOCK_SECONDS, parsed_time
from orchestrator.resources.openstack.mistral.definition import definition, faults
from orchestrator.resources.openstack.mistral.workflow_properties import PROPERTIES
from orchestrator.template.definition import ResourceDefinition

DEFINE: Final = "define"
SHOWN: Final = ("id", "workflow_name", "created_at", "updated_at", "state")


class Workflow(ResourceType):
    """A workflow. Each signal starts an execution."""

    name = "OS::Mistral::Workflow"
    service = "mistral"
    endpoint_type = "workflowv2"
    live_show = True
    support_version = "2015.1"
    unique = Unique((("name",),), "delete")
    properties = PROPERTIES
    attributes = {
        "data": Attribute("Name and input of the workflow.", "map"),
        "alarm_url": Attribute("The signed URL for signals.", "string", secret=True),
        "executions": Attribute("The executions that signals have started.", "list", live=True),
    }

    def validate_among(
        self, name: str, properties: Mapping[str, Value], resources: Mapping[str, ResourceDefinition]
    ) -> Sequence[Fault]:
        """Check the tasks, as Heat does."""
        written = resources[name].body.get("properties") or {}
        return [Fault(message, where) for message, where in faults(properties, written)]

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Create the key for signals; the workflow follows in a step.

        Raises:
            ProviderConflict: there is a workflow of the name.
        """
        if props.get("name") and mistral(ctx).find(WORKFLOWS, props["name"]) is not None:
            raise ProviderConflict(f"There is a workflow {props['name']} already.")
        key, secret = access_key(ctx.token), new_secret()
        data = {"url": signal_url(ctx.location, key, secret), "requested_at": datetime.now(UTC).isoformat()}
        return Created(_name(ctx, props), data, secret=True, access=Grant(key, secret))

    def find(self, ctx: Context, token: str) -> str | Sequence[str] | None:
        """Return None: the create itself sends no request."""
        return None

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Read the workflow, and name the step that creates it."""
        if ctx.action == "CREATE" and not ctx.data.get("id"):
            return Observation(exists=True, step=DEFINE, retry_after=0.0)
        own_id = self._own_id(ctx, physical_id)
        if own_id is None or mistral(ctx).find(WORKFLOWS, own_id) is None:
            return Observation(exists=False)
        data = {"name": physical_id, "input": ctx.properties.get("input")}
        return Observation(exists=True, attributes={"data": data, "alarm_url": ctx.data.get("url")})

    def advance(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], step: str
    ) -> Created | None:
        """Create the workflow; a second request finds the first workflow.

        Raises:
            ProviderConflict: there is another workflow of the name.
        """
        api = mistral(ctx)
        try:
            workflow: JsonMapping | None = api.create_workflow(definition(physical_id, props))
        except ProviderConflict:
            workflow = api.find(WORKFLOWS, physical_id)
            if workflow is None or not _is_own(ctx, workflow):
                raise
        return Created(physical_id, {**ctx.data, "id": (workflow or {}).get("id")}, secret=True)

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        """Replace the definition."""
        if changed - {"params", "use_request_body_as_input"}:
            mistral(ctx).update_workflow(definition(physical_id, props))
        return Created(physical_id, ctx.data, secret=True)

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Delete the executions and the workflow, unless it belongs to another user."""
        api = mistral(ctx)
        for execution in ctx.data.get("executions") or ():
            api.delete_execution(execution)
        own_id = self._own_id(ctx, physical_id)
        if own_id is not None:
            api.remove(WORKFLOWS, own_id)

    def signal(self, ctx: Context, physical_id: str, details: Value) -> Signalled:
        """Start an execution, with the input and parameters of the signal."""
        props = ctx.properties
        given, params = _signalled(details, whole=bool(props.get("use_request_body_as_input")))
        _check(given, params, props.get("input") or {})
        execution = mistral(ctx).execute(
            physical_id,
            {**(props.get("input") or {}), **(given or {})},
            {**(props.get("params") or {}), **(params or {})},
        )
        return Signalled(
            data={**ctx.data, "executions": [execution["id"], *(ctx.data.get("executions") or ())]}
        )

    def read_attributes(self, ctx: Context, physical_id: str, names: frozenset[str]) -> Mapping[str, Value]:
        """Return the executions, and the workflow as `show`."""
        api = mistral(ctx)
        values: JsonObject = {"show": api.find(WORKFLOWS, physical_id)} if "show" in names else {}
        if "executions" in names:
            found = (api.find(EXECUTIONS, one) for one in ctx.data.get("executions") or ())
            values["executions"] = [_shown(execution) for execution in found if execution]
        return values

    def _own_id(self, ctx: Context, physical_id: str) -> str | None:
        """Return the id of the workflow, None if it was not created or belongs to another user."""
        if ctx.data.get("id"):
            return str(ctx.data["id"])
        found = mistral(ctx).find(WORKFLOWS, physical_id)
        return str(found["id"]) if found is not None and _is_own(ctx, found) else None


def mistral(ctx: Context) -> Workflows:
    """Return Mistral, called with the stack's credential."""
    return openstack(ctx).workflow


def _name(ctx: Context, props: Mapping[str, Value]) -> str:
    return props.get("name") or ctx.physical_name


def _is_own(ctx: Context, workflow: JsonMapping) -> bool:
    """Return whether a workflow is not older than the resource."""
    requested, created = (
        parsed_time(time) for time in (ctx.data.get("requested_at"), workflow.get("created_at"))
    )
    if requested is None or created is None:
        return True
    return created >= requested - timedelta(seconds=CLOCK_SECONDS)


def _signalled(details: Value, *, whole: bool) -> tuple[Any, Any]:
    """Return input and parameters in a signal."""
    if whole:
        return details, None
    if details is None:
        return None, None
    if not isinstance(details, Mapping):
        raise ProviderError("Signal data must be a map with the keys input and params", "ValueError")
    return details.get("input"), details.get("params")


def _check(given: Any, params: Any, declared: Mapping[str, Value]) -> None:
    """Refuse an input that the workflow does not have.

    Raises:
        ProviderError: input or parameters are not valid.
    """
    fault = ""
    if given is not None and not isinstance(given, Mapping):
        fault = f"Input in signal data must be a map, find a {type(given)}"
    elif unknown := sorted(set(given or ()) - declared.keys()):
        fault = f"Unknown input {unknown[0]}"
    elif params is not None and not isinstance(params, Mapping):
        fault = f"Params must be a map, find a {type(params)}"
    if fault:
        raise ProviderError(f"Signal data error: {fault}", "StackValidationFailed")


def _shown(execution: JsonMapping) -> JsonObject:
    values = {name: execution.get(name) for name in SHOWN}
    return values | {name: decoded(execution.get(name)) for name in ("input", "output")}
