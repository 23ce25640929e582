"""OS::Heat::Stack: a stack in another region, made through its API (docs/internals/resource-types.md §A7).

Where a region is, and as whom it is called, is the catalog's to say; a template only names it. The stack is
tagged with the request token, so that one whose answer was lost is found again, and looked at until it has
done what was asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from orchestrator.clients.region_catalog import Endpoint
from orchestrator.clients.remote_stacks import Action, Gone, RemoteStacks
from orchestrator.errors import ProviderBusy, ProviderError, ProviderSilent
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

# What a stack may say that it did before it says that it does this: Heat notes it some time after its answer.
ACTED: Final = frozenset({"DELETE", "SUSPEND", "RESUME", "SNAPSHOT"})
SLOWEST_LOOK_SECONDS: Final = 15.0
NO_SECRETS: Final = "key-manager endpoint is not in service catalog."  # where credentials would be


class RemoteStack(ResourceType):
    """A stack in another region."""

    name = "OS::Heat::Stack"
    properties = {
        "context": Property(
            "map",
            "Where the stack is to be.",
            update_allowed=True,
            schema={
                "region_name": Property(
                    "string", "The region of the stack, by default the one it is described in."
                ),
                "credential_secret_id": Property(
                    "string",
                    "A secret of the key manager with the credential for another cloud.",
                    update_allowed=True,
                ),
                "ca_cert": Property(
                    "string",
                    "An authority to trust, in PEM, besides those the system knows.",
                    update_allowed=True,
                ),
                "insecure": Property(
                    "boolean",
                    "Whether to talk to whoever answers, without looking at its certificate.",
                    default=False,
                    update_allowed=True,
                ),
            },
        ),
        "template": Property(
            "string", "The template to make the stack from, as a text.", required=True, update_allowed=True
        ),
        "timeout": Property(
            "integer", "Minutes that making or changing the stack may take.", update_allowed=True
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
        """Have the template looked at where it is to be used."""
        if "template" not in props:
            return ()
        where = (props.get("context") or {}).get("credential_secret_id")
        place = "remote cloud" if where else f'region "{_region(props) or ctx.catalog.own}"'
        try:
            stacks = _stacks(ctx, props)
        except ProviderError as error:
            message = f'Cannot establish connection to Heat endpoint at {place} due to "{error}"'
            return (Fault(message, "context", alone=True),)
        try:
            stacks.validate(_told(ctx, props))
        except ProviderError as error:
            unheard = isinstance(error, ProviderBusy | ProviderSilent)
            why = str(error) if unheard else f"ERROR: {error}"  # so a client of Heat's quotes a refusal
            message = f'Failed validating stack template using Heat endpoint at {place} due to "{why}"'
            return (Fault(message, "template", alone=True),)
        return ()

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Ask for the stack, under the resource's physical name."""
        body = {**_wanted(ctx, props), "stack_name": ctx.physical_name, "tags": ctx.token}
        return Created(_stacks(ctx, props).create(body))

    def find(self, ctx: Context, token: str) -> str | None:
        """Return the stack that is tagged with the token."""
        return _stacks(ctx, ctx.properties).with_tag(token)

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Look whether it has done what was asked."""
        try:
            stack = _found(ctx, physical_id)
        except Gone:
            return Observation(exists=False)
        action, status = _split(str(stack["stack_status"]))
        if (action, status) == ("DELETE", "COMPLETE"):
            return Observation(exists=False)
        asked = ctx.action if ctx.action in ACTED or _is_asked(ctx) else action
        if status == "IN_PROGRESS" or action != asked:
            again = min(1.0 + ctx.elapsed_seconds / 5, SLOWEST_LOOK_SECONDS)
            return Observation(exists=True, ready=False, retry_after=again)
        if status == "FAILED":
            reason = stack.get("stack_status_reason") or "Unknown"
            message = f'Went to status {action}_{status} due to "{reason}"'
            return Observation(exists=True, error=message, replaceable=action == "CREATE")
        outputs = {one["output_key"]: one.get("output_value") for one in stack.get("outputs") or ()}
        return Observation(exists=True, attributes={"stack_name": stack["stack_name"], "outputs": outputs})

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        """Ask for the stack as it is wanted now; its resources decide for themselves."""
        try:
            _stacks(ctx, props).update(physical_id, _wanted(ctx, props))
        except Gone as error:
            raise ProviderError(str(error), "EntityNotFound") from error
        return Created(physical_id)

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Ask for its removal; where it is not known any more which region it is in, in each."""
        for stacks in _everywhere(ctx):
            try:
                stacks.delete(physical_id)
            except Gone:
                continue

    def suspend(self, ctx: Context, physical_id: str) -> None:
        """Ask for its pause."""
        _act(ctx, physical_id, "suspend")

    def resume(self, ctx: Context, physical_id: str) -> None:
        """Ask for the end of its pause."""
        _act(ctx, physical_id, "resume")

    def check(self, ctx: Context, physical_id: str) -> None:
        """Ask it to look at its own resources."""
        _act(ctx, physical_id, "check")

    def snapshot(self, ctx: Context, physical_id: str) -> Mapping[str, Value]:
        """Ask for a snapshot, named after the token.

        A restored stack has the template and the parameters that this one has now: they are in the template
        around it.
        """
        try:
            made = _stacks(ctx, ctx.properties).snapshot(physical_id, ctx.token)
        except Gone as error:
            raise ProviderError(str(error), "EntityNotFound") from error
        return {"snapshot_id": made, "stack_id": physical_id}

    def delete_snapshot(self, ctx: Context, kept: Mapping[str, Value]) -> None:
        """Ask for its removal, by its id or, if that was lost, by its name."""
        for stacks in _everywhere(ctx):
            try:
                if kept:
                    stacks.delete_snapshot(kept["stack_id"], kept["snapshot_id"])
                else:
                    stacks.delete_snapshot(ctx.physical_name, ctx.token, named=True)
            except Gone:
                continue

    def is_healthy_after_failure(self, ctx: Context, physical_id: str) -> bool:
        """Whether the stack can go on: after a failed update it is updated again, else it must be well."""
        if ctx.action == "CHECK":
            return False
        try:
            action, status = _split(str(_found(ctx, physical_id)["stack_status"]))
        except Gone:
            return False
        return action != "DELETE" and (ctx.action == "UPDATE" or status == "COMPLETE")


def _region(props: Mapping[str, Value]) -> str | None:
    return (props.get("context") or {}).get("region_name") or None


def _is_asked(ctx: Context) -> bool:
    """Whether a check was asked for; the first look of all is only a look."""
    return ctx.action == "CHECK" and ctx.elapsed_seconds > 0


def _split(stack_status: str) -> tuple[str, str]:
    action, _, status = stack_status.partition("_")
    return action, status


def _stacks(ctx: Context, props: Mapping[str, Value]) -> RemoteStacks:
    """Return the stacks of the region that the properties name.

    Raises:
        ProviderError: there is no way there.
    """
    given: Mapping[str, Any] = props.get("context") or {}
    if given.get("credential_secret_id"):
        raise ProviderError(NO_SECRETS, "EndpointNotFound")
    return _at(ctx, ctx.catalog.endpoint(_region(props)), given)


def _at(ctx: Context, endpoint: Endpoint, given: Mapping[str, Any]) -> RemoteStacks:
    return RemoteStacks(
        endpoint,
        ctx.deadline_seconds,
        insecure=bool(given.get("insecure")),
        ca_cert=given.get("ca_cert") or "",
    )


def _everywhere(ctx: Context) -> list[RemoteStacks]:
    """Return the stacks of the region, of every region when the properties are lost."""
    if ctx.properties:
        return [_stacks(ctx, ctx.properties)]
    return [_at(ctx, endpoint, {}) for endpoint in ctx.catalog.everywhere()]


def _found(ctx: Context, physical_id: str) -> Mapping[str, Any]:
    """Return the stack, wherever it is.

    Raises:
        Gone: it is nowhere.
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
            raise  # it does something else; had it been asked before, it would do this


def _wanted(ctx: Context, props: Mapping[str, Value]) -> dict[str, Any]:
    """Return what a create and an update ask for."""
    return {
        **_told(ctx, props),
        "parameters": props.get("parameters") or {},
        "timeout_mins": props.get("timeout"),
        "disable_rollback": True,
    }


def _told(ctx: Context, props: Mapping[str, Value]) -> dict[str, Any]:
    """Return the template with what it needs of the stack around it."""
    told: dict[str, Any] = {"template": props["template"]}
    if ctx.stack_context is not None:
        told["files"] = dict(ctx.stack_context.files())
        told["environment"] = ctx.stack_context.environment(props.get("parameters") or {}).to_json()
    return told
