"""OS::Heat::SoftwareDeployment: a config that an agent runs on a server (docs/internals/resource-types.md
§A9).

Each triggering action publishes a config for that action, with the values of the inputs and the agent's
signal settings. The deployment does not poll: the agent's signal triggers the next check.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from orchestrator.resources.base import (
    Attribute,
    Context,
    Created,
    Fault,
    Grant,
    Observation,
    Property,
    ResourceType,
    Signalled,
    Value,
)
from orchestrator.resources.builtin import deployment_signals, server_metadata
from orchestrator.resources.builtin import software_io as io
from orchestrator.resources.builtin.agent_transport import access, api_access, signal_url
from orchestrator.resources.builtin.temporary_urls import (
    has_object_store,
    poll_seconds,
    remove_container,
)
from orchestrator.resources.software_api import (
    COMPONENT,
    UNGROUPED,
    ConfigDraft,
    ConfigNotFound,
    DeploymentDraft,
    id_of,
)
from orchestrator.schema.constraints import AllowedValues
from orchestrator.template.definition import ResourceDefinition

ACTIONS: Final = ("CREATE", "UPDATE", "DELETE", "SUSPEND", "RESUME")
TRANSPORTS: Final = ("CFN_SIGNAL", "TEMP_URL_SIGNAL", "HEAT_SIGNAL", "NO_SIGNAL", "ZAQAR_SIGNAL")
TEMP_URL: Final = "TEMP_URL_SIGNAL"
ZAQAR: Final = "ZAQAR_SIGNAL"
SERVER: Final = "OS::Nova::Server"
SOFTWARE_CONFIG: Final = "SOFTWARE_CONFIG"  # how a machine must take its user data for agents to be on it
REMOVE: Final = "remove"  # the step of a delete after the DELETE config
RECEIVE: Final = "receive"  # the step after the agent has put its result into the object store
BUILT_IN_INPUTS: Final = {
    "deploy_server_id": "ID of the server being deployed to",
    "deploy_action": "Name of the current action being deployed",
    "deploy_stack_id": "ID of the stack this deployment belongs to",
    "deploy_resource_name": "Name of this deployment resource in the stack",
    "deploy_signal_transport": "Transport by which the server reports the values of the outputs",
    "deploy_signal_id": "Where to signal the values of the outputs",
    "deploy_signal_verb": "HTTP verb of that signal",
    "deploy_auth_url": "URL of the API's authentication",
    "deploy_username": "Username for the API",
    "deploy_user_id": "User ID for the API",
    "deploy_password": "Password for the API",
    "deploy_project_id": "ID of the project for the API",
    "deploy_region_name": "Region name for the API",
}  # displayed by tools on the server


class SoftwareDeployment(ResourceType):
    """A config on a server."""

    name = "OS::Heat::SoftwareDeployment"
    can_check = False  # the result of a script cannot be observed
    support_version = "2014.1"
    flight_seconds = 0.0  # created in our own database
    delete_retry_seconds = 0.0  # a failed script runs again with the next delete
    preemptible = frozenset(ACTIONS)  # an agent may never answer
    signals_always = True
    properties = {
        "config": Property("string", "The config to deploy.", update_allowed=True),
        "server": Property("string", "The target server.", required=True),
        "input_values": Property("map", "Values of the config's inputs.", update_allowed=True),
        "actions": Property(
            "list",
            "Actions of this resource that run the config.",
            default=["CREATE", "UPDATE"],
            update_allowed=True,
            constraints=(AllowedValues(ACTIONS),),
        ),
        "name": Property(
            "string",
            "Name of the published config; a server runs its configs in the order of their names.",
            update_allowed=True,
        ),
        "signal_transport": Property(
            "string",
            "Transport by which the agent reports the result. NO_SIGNAL does not wait for a result.",
            default="CFN_SIGNAL",
            constraints=(AllowedValues(TRANSPORTS),),
        ),
    }
    attributes = {
        io.STDOUT: Attribute("Captured standard output of the config.", type="string"),
        io.STDERR: Attribute("Captured standard error of the config.", type="string"),
        io.STATUS_CODE: Attribute("Status code of the config.", type="string"),
    }
    empty: Value = ""  # config of a deployment without a config

    def has_attribute(self, name: str) -> bool:
        """Return whether `get_attr` may request `name`; every output of the config is an attribute."""
        return bool(name)

    def validate(self, properties: Mapping[str, Value], stack_timeout_seconds: float) -> Sequence[Fault]:
        """Refuse the transport by a message queue."""
        if properties.get("signal_transport") == ZAQAR:
            return (Fault(f"{ZAQAR} is not supported here.", "signal_transport"),)
        return ()

    def inquire(self, ctx: Context, props: Mapping[str, Value]) -> Sequence[Fault]:
        """Require an object store for signals through it."""
        if props.get("signal_transport") != TEMP_URL or has_object_store(ctx):
            return ()
        return (Fault(f"{TEMP_URL} requires an object store, and the cloud has none.", "signal_transport"),)

    def validate_among(
        self, name: str, properties: Mapping[str, Value], resources: Mapping[str, ResourceDefinition]
    ) -> Sequence[Fault]:
        """Require that a server of the same template supports deployments."""
        other_properties = resources[name].body.get("properties")
        server = other_properties.get("server") if isinstance(other_properties, Mapping) else None
        called = server.get("get_resource", server.get("Ref")) if isinstance(server, Mapping) else None
        other = resources.get(called) if isinstance(called, str) else None
        if other is None:
            return ()
        theirs = other.body.get("properties")
        default = "HEAT_CFNTOOLS" if other.type == SERVER else SOFTWARE_CONFIG
        data_format = theirs.get("user_data_format", default) if isinstance(theirs, Mapping) else default
        if not isinstance(data_format, str) or data_format == SOFTWARE_CONFIG:
            return ()
        message = (
            f"Resource {called}'s property user_data_format should be set to SOFTWARE_CONFIG since there are "
            "software deployments on it."
        )
        return (Fault(message),)

    # The verbs.

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Publish the config if CREATE triggers it; later actions use the same id."""
        deployment_id = id_of(ctx.token)
        deployed = self._act(ctx, deployment_id, props, "CREATE")
        return Created(deployment_id, {"deployed": deployed})

    def grants(self, ctx: Context, physical_id: str) -> Grant | None:
        """Grant the agent's credentials access for its signals."""
        transport = ctx.properties.get("signal_transport")
        if transport not in ("CFN_SIGNAL", "HEAT_SIGNAL"):
            return None
        user = ctx.users.make() if transport == "HEAT_SIGNAL" and ctx.users is not None else None
        return access(ctx.software.credentials(physical_id), user)

    def find(self, ctx: Context, token: str) -> str | None:
        """Return the id that an attempt with this token published."""
        deployment = ctx.software.deployment(id_of(token))
        return None if deployment is None else deployment.id

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Return the result of the current action; an action that triggers nothing is complete at once."""
        now = ctx.software.deployment(physical_id)
        if now is None:
            if ctx.action == "DELETE":
                return Observation(exists=False)
            lost = bool(ctx.data.get("deployed"))
            error = f"Deployment with id {physical_id} not found" if lost else ""
            nothing = dict.fromkeys(io.ALWAYS)
            return Observation(True, attributes=nothing, error=error, error_kind="NotFound")
        attributes = {**dict.fromkeys(io.ALWAYS), **now.output_values}
        if ctx.action == now.action == "DELETE" and (
            now.status == "COMPLETE" or ctx.software.server_lost(physical_id)
        ):
            return Observation(True, ready=False, step=REMOVE)
        if ctx.action != now.action or now.status == "COMPLETE":
            return Observation(True, ready=ctx.action != "DELETE", attributes=attributes)
        if now.status == "FAILED":
            error = f"Deployment to server failed: {now.status_reason}"
            return Observation(True, attributes=attributes, error=error, error_kind="Error")
        reason = f"{now.status_reason}: the agent on {now.server_id} has not signalled yet"
        if ctx.properties.get("signal_transport") != TEMP_URL:
            return Observation(True, ready=False, retry_after=None, reason=reason)
        step = RECEIVE if deployment_signals.result(ctx, now) is not None else ""
        return Observation(True, ready=False, step=step, retry_after=poll_seconds(ctx), reason=reason)

    def must_replace(self, ctx: Context, physical_id: str, props: Mapping[str, Value]) -> bool:
        """Return whether a changed input is declared with `replace_on_change`."""
        now = ctx.software.deployment(physical_id)
        before = None if now is None else ctx.software.config(now.config_id)
        if before is None:
            return False
        source = _source(ctx, props)
        return io.asks_for_another(
            before.draft.inputs, self._inputs(ctx, physical_id, props, source, "UPDATE")
        )

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        """Publish the config again if UPDATE triggers it."""
        deployed = self._act(ctx, physical_id, props, "UPDATE")
        return Created(physical_id, {"deployed": deployed or bool(ctx.data.get("deployed"))})

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Publish the DELETE config if the server still exists; without one, remove the deployment."""
        if ctx.software.server_lost(physical_id) or not self._undo(ctx, physical_id):
            _remove(ctx, physical_id)

    def advance(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], step: str
    ) -> Created | None:
        """Process the result in the object store, or remove the deployment: the agent has reported the result
        of the DELETE config, or is lost.
        """
        if step == REMOVE:
            _remove(ctx, physical_id)
        elif (now := ctx.software.deployment(physical_id)) is not None:
            ctx.software.signal(physical_id, deployment_signals.result(ctx, now) or {})
        return None

    def suspend(self, ctx: Context, physical_id: str) -> None:
        """Publish the config if SUSPEND triggers it."""
        self._act(ctx, physical_id, ctx.properties, "SUSPEND")

    def resume(self, ctx: Context, physical_id: str) -> None:
        """Publish the config if RESUME triggers it."""
        self._act(ctx, physical_id, ctx.properties, "RESUME")

    def signal(self, ctx: Context, physical_id: str, details: Value) -> Signalled:
        """Process the result reported by the agent."""
        return Signalled(ctx.software.signal(physical_id, details if isinstance(details, Mapping) else {}))

    def cancel(self, ctx: Context, physical_id: str) -> str:
        """Wait no longer for the agent."""
        ctx.software.cancel(physical_id)
        return "Deployment cancelled."

    # Publishing.

    def _undo(self, ctx: Context, physical_id: str) -> bool:
        """Publish the DELETE config; return False if there is none, or if it is no longer stored."""
        if not ctx.properties.get("server"):
            return False
        try:
            return self._act(ctx, physical_id, ctx.properties, "DELETE")
        except ConfigNotFound:
            return False

    def _act(self, ctx: Context, deployment_id: str, props: Mapping[str, Value], action: str) -> bool:
        """Publish the config of an action; return False if the action triggers nothing."""
        source = _source(ctx, props)
        if action not in _triggers(props, source):
            return False
        inputs = self._inputs(ctx, deployment_id, props, source, action)
        config = ConfigDraft(
            name=props.get("name") or source.name or ctx.physical_name,
            group=source.group or UNGROUPED,
            config=self.derive(source.config, inputs, props) or self.empty,
            inputs=inputs,
            outputs=source.outputs,
            options=source.options,
        )
        waits = props.get("signal_transport") != "NO_SIGNAL"
        draft = DeploymentDraft(props["server"], action, config, props.get("input_values"), waits)
        ctx.software.deploy(deployment_id, draft, secret=ctx.secret)
        server_metadata.publish(ctx, props["server"])
        return True

    def derive(
        self, config: Value, inputs: Sequence[Mapping[str, Value]], props: Mapping[str, Value]
    ) -> Value:
        """Return the config as the machine gets it."""
        return config

    def _inputs(
        self, ctx: Context, deployment_id: str, props: Mapping[str, Value], source: ConfigDraft, action: str
    ) -> list[dict[str, Value]]:
        added = [
            (name, value, BUILT_IN_INPUTS[name])
            for name, value in _built_in_inputs(ctx, deployment_id, props, action)
        ]
        return io.derive_inputs(source.inputs, props.get("input_values") or {}, added)


def _remove(ctx: Context, physical_id: str) -> None:
    if ctx.properties.get("signal_transport") == TEMP_URL:
        remove_container(ctx, deployment_signals.container_of(ctx))
    ctx.software.remove_deployment(physical_id)
    if server_id := ctx.properties.get("server"):
        server_metadata.publish(ctx, server_id)
    ctx.software.forget(physical_id)


def _built_in_inputs(
    ctx: Context, deployment_id: str, props: Mapping[str, Value], action: str
) -> Iterator[tuple[str, Value]]:
    """Yield the built-in inputs of every deployment."""
    transport = props.get("signal_transport")
    yield "deploy_server_id", props["server"]
    yield "deploy_action", action
    yield "deploy_stack_id", ctx.software.place.stack_path
    yield "deploy_resource_name", ctx.name
    yield "deploy_signal_transport", transport
    if transport == "CFN_SIGNAL":
        yield "deploy_signal_id", signal_url(ctx.software.place, ctx.software.credentials(deployment_id))
        yield "deploy_signal_verb", "POST"
    elif transport == TEMP_URL:
        yield "deploy_signal_id", deployment_signals.signal_url(ctx, action)
        yield "deploy_signal_verb", "PUT"
    elif transport == "HEAT_SIGNAL":
        make = action in ("CREATE", "UPDATE")  # these actions also grant access
        access = api_access(ctx, ctx.software.credentials(deployment_id), make=make)
        for name in ("auth_url", "username", "user_id", "password", "project_id"):
            yield f"deploy_{name}", access[name]
        if access["region_name"] is not None:
            yield "deploy_region_name", access["region_name"]


def _source(ctx: Context, props: Mapping[str, Value]) -> ConfigDraft:
    """Return the config to run, an empty config if the property is not set.

    Raises:
        ConfigNotFound: the config does not exist.
    """
    config_id = props.get("config")
    if not config_id:
        return ConfigDraft(group=None)
    config = ctx.software.config(config_id)
    if config is None:
        raise ConfigNotFound(config_id)
    return config.draft


def _triggers(props: Mapping[str, Value], source: ConfigDraft) -> Collection[str]:
    """Return the triggering actions; a component config defines its own."""
    if source.group == COMPONENT:
        return set(io.actions_of(source.config))
    return props.get("actions") or ()
