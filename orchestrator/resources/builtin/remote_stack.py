"""OS::Heat::Stack: a stack in another region, managed through that region's API
(docs/internals/resource-types.md §A7).

The catalog defines the regions and their credentials; a template only refers to them. The remote stack is
tagged with the request token, so that a stack whose response was lost can be found. It is observed until the
requested action is complete.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from orchestrator.clients.region_catalog import Endpoint
from orchestrator.clients.remote_stacks import Action, Gone, RemoteStacks
from orchestrator.errors import ProviderBusy, ProviderChanging, ProviderError, ProviderSilent
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.resources.base import (
    Attribute,
    Change,
    Context,
    Created,
    Fault,
    Observation,
    Property,
    ResourceType,
    Value,
)

# Statuses that a stack may report before it reports this action: Heat records an action some time after its
# response.
ACTED: Final = frozenset({"DELETE", "SUSPEND", "RESUME", "SNAPSHOT"})
CHECK_STARTS_SECONDS: Final = 60.0  # after a request, within which a check of the remote stack starts
SLOWEST_LOOK_SECONDS: Final = 15.0
NO_SECRETS: Final = "key-manager endpoint is not in service catalog."  # where credentials would be


class RemoteStack(ResourceType):
    """A stack in another region."""

    name = "OS::Heat::Stack"
    live_show = True
    needs_ready = True  # resources of the stack that need a ready requirement are not known here
    properties = {
        "context": Property(
            "map",
            "Location of the stack.",
            update_allowed=True,
            schema={
                "region_name": Property(
                    "string", "Region of the stack; the default is the region of this API."
                ),
                "credential_secret_id": Property(
                    "string",
                    "A secret of the key manager with the credential for another cloud.",
                    update_allowed=True,
                ),
                "ca_cert": Property(
                    "string",
                    "An additional CA certificate, in PEM format.",
                    update_allowed=True,
                ),
                "insecure": Property(
                    "boolean",
                    "Skip the verification of the server's certificate.",
                    default=False,
                    update_allowed=True,
                ),
            },
        ),
        "template": Property(
            "string", "The text of the stack's template.", required=True, update_allowed=True
        ),
        "timeout": Property(
            "integer", "Timeout for creating or updating the stack, in minutes.", update_allowed=True
        ),
        "parameters": Property(
            "map", "Values for the parameters of the template.", default={}, update_allowed=True
        ),
    }
    attributes = {
        "stack_name": Attribute("The name of the stack.", type="string"),
        "outputs": Attribute("The values of the stack's outputs, by name.", type="map"),
    }

    def change(
        self, before: Mapping[str, Value], after: Mapping[str, Value], changed: frozenset[str]
    ) -> Change:
        """Another region takes another stack."""
        if "context" in changed and _region(before) != _region(after):
            return "replace"
        return super().change(before, after, changed)

    def inquire(self, ctx: Context, props: Mapping[str, Value]) -> Sequence[Fault]:
        """Validate the template in the target region."""
        if "template" not in props:
            return ()
        where = (props.get("context") or {}).get("credential_secret_id")
        place = "remote cloud" if where else f'region "{_region(props) or ctx.catalog.own_region}"'
        try:
            stacks = _stacks(ctx, props)
        except ProviderError as error:
            message = f'Cannot establish connection to Heat endpoint at {place} due to "{error}"'
            return (Fault(message, "context", alone=True),)
        try:
            stacks.validate(_template_with_files(ctx, props))
        except ProviderError as error:
            unheard = isinstance(error, ProviderBusy | ProviderSilent)
            why = str(error) if unheard else f"ERROR: {error}"  # so a client of Heat's quotes a refusal
            message = f'Failed validating stack template using Heat endpoint at {place} due to "{why}"'
            return (Fault(message, "template", alone=True),)
        return ()

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Request the stack, under the resource's physical name."""
        body = {**_request_body(ctx, props), "stack_name": ctx.physical_name, "tags": ctx.token}
        return Created(_stacks(ctx, props).create(body))

    def find(self, ctx: Context, token: str) -> str | None:
        """Return the stack that is tagged with the token."""
        return _stacks(ctx, ctx.properties).with_tag(token)

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Observe whether the requested action is complete."""
        try:
            stack = _remote_stack(ctx, physical_id)
        except Gone:
            return Observation(exists=False)
        action, status = _split(str(stack["stack_status"]))
        if (action, status) == ("DELETE", "COMPLETE"):
            return Observation(exists=False)
        requested = ctx.action if ctx.action in ACTED or _is_check_requested(ctx) else action
        if status == "IN_PROGRESS" or (action != requested and not _is_only_observed(ctx, status)):
            again = min(1.0 + ctx.elapsed_seconds / 5, SLOWEST_LOOK_SECONDS)
            return Observation(exists=True, ready=False, retry_after=again)
        if status == "FAILED":
            reason = stack.get("stack_status_reason") or "Unknown"
            message = f'Went to status {action}_{status} due to "{reason}"'
            return Observation(exists=True, error=message, replaceable=action == "CREATE")
        outputs = {output["output_key"]: output.get("output_value") for output in stack.get("outputs") or ()}
        return Observation(exists=True, attributes={"stack_name": stack["stack_name"], "outputs": outputs})

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        """Request an update to the desired template; the remote stack selects the steps of its resources."""
        try:
            _stacks(ctx, props).update(physical_id, _request_body(ctx, props))
        except Gone as error:
            raise ProviderError(str(error), "EntityNotFound") from error
        return Created(physical_id)

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Request deletion; in every region if the region is no longer known."""
        for stacks in _everywhere(ctx):
            try:
                stacks.delete(physical_id)
            except Gone:
                continue

    def suspend(self, ctx: Context, physical_id: str) -> None:
        """Request suspension."""
        _act(ctx, physical_id, "suspend")

    def resume(self, ctx: Context, physical_id: str) -> None:
        """Request resumption."""
        _act(ctx, physical_id, "resume")

    def check(self, ctx: Context, physical_id: str) -> None:
        """Request a check of the remote stack's resources.

        A remote stack that has failed fails the check; a request would only observe its resources.
        """
        try:
            action, status = _split(str(_remote_stack(ctx, physical_id)["stack_status"]))
        except Gone:
            return
        if status == "IN_PROGRESS" and action != "CHECK":
            raise ProviderChanging(f"the remote stack is {action}_{status}", "ActionInProgress")
        if status == "COMPLETE" or action == "CHECK":
            _act(ctx, physical_id, "check")

    def snapshot(self, ctx: Context, physical_id: str) -> Mapping[str, Value]:
        """Request a snapshot, named after the token.

        A restored stack gets the current template and parameters, which are part of the parent template.
        """
        try:
            made = _stacks(ctx, ctx.properties).snapshot(physical_id, ctx.token)
        except Gone as error:
            raise ProviderError(str(error), "EntityNotFound") from error
        return {"snapshot_id": made, "stack_id": physical_id}

    def delete_snapshot(self, ctx: Context, snapshot_data: Mapping[str, Value]) -> None:
        """Request deletion of the snapshot by its id, or by its name if the id was lost."""
        for stacks in _everywhere(ctx):
            try:
                if snapshot_data:
                    stacks.delete_snapshot(snapshot_data["stack_id"], snapshot_data["snapshot_id"])
                else:
                    stacks.delete_snapshot(ctx.physical_name, ctx.token, named=True)
            except Gone:
                continue

    def read_attributes(self, ctx: Context, physical_id: str, names: frozenset[str]) -> Mapping[str, Value]:
        """Return `show`, the only live attribute: the stack as its region shows it, null if it is gone."""
        try:
            return {"show": dict(_remote_stack(ctx, physical_id))}
        except Gone:
            return {"show": None}

    def is_healthy_after_failure(self, ctx: Context, physical_id: str) -> bool:
        """Return whether the stack can continue: after a failed update another update follows, otherwise it
        must be COMPLETE.
        """
        if ctx.action == "CHECK":
            return False
        try:
            action, status = _split(str(_remote_stack(ctx, physical_id)["stack_status"]))
        except Gone:
            return False
        return action != "DELETE" and (ctx.action == "UPDATE" or status == "COMPLETE")


def _region(props: Mapping[str, Value]) -> str | None:
    return (props.get("context") or {}).get("region_name") or None


def _is_check_requested(ctx: Context) -> bool:
    """Return whether a check was requested; the first observation requests nothing."""
    return ctx.action == "CHECK" and ctx.elapsed_seconds > 0


def _is_only_observed(ctx: Context, status: str) -> bool:
    """Return whether the remote stack runs no check although a check was requested: it has failed, or it has
    not reached its desired revision.
    """
    if not _is_check_requested(ctx):
        return False
    return status == "FAILED" or ctx.elapsed_seconds > CHECK_STARTS_SECONDS


def _split(stack_status: str) -> tuple[str, str]:
    action, _, status = stack_status.partition("_")
    return action, status


def _stacks(ctx: Context, props: Mapping[str, Value]) -> RemoteStacks:
    """Return the stacks API of the region that the properties refer to.

    Raises:
        ProviderError: the region is not in the catalog.
    """
    context: JsonMapping = props.get("context") or {}
    if context.get("credential_secret_id"):
        raise ProviderError(NO_SECRETS, "EndpointNotFound")
    return _at(ctx, ctx.catalog.endpoint(_region(props)), context)


def _at(ctx: Context, endpoint: Endpoint, context: JsonMapping) -> RemoteStacks:
    return RemoteStacks(
        endpoint,
        ctx.deadline_seconds,
        insecure=bool(context.get("insecure")),
        ca_cert=context.get("ca_cert") or "",
    )


def _everywhere(ctx: Context) -> list[RemoteStacks]:
    """Return the stacks of the region, of every region when the properties are lost."""
    if ctx.properties:
        return [_stacks(ctx, ctx.properties)]
    return [_at(ctx, endpoint, {}) for endpoint in ctx.catalog.everywhere()]


def _remote_stack(ctx: Context, physical_id: str) -> JsonMapping:
    """Return the stack from the first region that has it.

    Raises:
        Gone: no region has it.
    """
    for stacks in _everywhere(ctx):
        try:
            return stacks.show(physical_id)
        except Gone:
            continue
    raise Gone(physical_id)


def _act(ctx: Context, physical_id: str, action: Action) -> None:
    stacks = _stacks(ctx, ctx.properties)
    try:
        stacks.start_action(physical_id, action)
    except Gone as error:
        raise ProviderError(str(error), "EntityNotFound") from error
    except ProviderBusy:
        if _split(str(stacks.show(physical_id)["stack_status"]))[0] != action.upper():
            raise  # busy with another action; after our request it would report ours


def _request_body(ctx: Context, props: Mapping[str, Value]) -> JsonObject:
    """Return the request body of a create or an update."""
    return {
        **_template_with_files(ctx, props),
        "parameters": props.get("parameters") or {},
        "timeout_mins": props.get("timeout"),
        "disable_rollback": True,
    }


def _template_with_files(ctx: Context, props: Mapping[str, Value]) -> JsonObject:
    """Return the template with the files and the environment of the parent stack."""
    request: JsonObject = {"template": props["template"]}
    if ctx.stack_context is not None:
        request["files"] = dict(ctx.stack_context.files())
        request["environment"] = ctx.stack_context.environment(props.get("parameters") or {}).to_json()
    return request
