"""OS::Nova::Server: the verbs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Final

from orchestrator.clients.openstack.session.shared_lists import NotListedYet
from orchestrator.errors import ProviderChanging, ProviderConflict, ProviderError, ProviderSilent
from orchestrator.json_types import JsonObject
from orchestrator.resources.base import (
    Attribute,
    Change,
    Context,
    Created,
    Fault,
    Observation,
    Property,
    Value,
)
from orchestrator.resources.builtin.server_metadata import require_object_store
from orchestrator.resources.openstack.creation_marks import own_tags, token_tag
from orchestrator.resources.openstack.failure_causes import with_request
from orchestrator.resources.openstack.nova.base import compute
from orchestrator.resources.openstack.nova.server import (
    agent,
    build_times,
    images,
    interfaces,
    live_attributes,
    port_release,
    request,
    state,
    steps,
    validation,
)
from orchestrator.resources.openstack.nova.server.declarations import (
    ATTRIBUTES,
    EARLY_ATTRIBUTES,
    NEEDS_READY,
    PROPERTIES,
    REPLACE,
    TRANSLATION,
)
from orchestrator.resources.openstack.nova.server.listing import ListedServer
from orchestrator.resources.openstack.settings import as_json_texts
from orchestrator.resources.stack_context import Grant
from orchestrator.schema.translation import Rule
from orchestrator.template.definition import ResourceDefinition

MAX_NAME: Final = 53  # characters; a host name on Windows has fewer, a DNS label 63
PORTS_ONLY: Final = "ports-of:"  # begins the id of an object that consists only of own ports
NO_SERVER: Final = "The request for the server was lost"


class Server(ListedServer):
    """A virtual machine."""

    name = "OS::Nova::Server"
    support_version = "2014.1"
    physical_name_limit = MAX_NAME
    delete_stalled_seconds = state.DELETE_STALLED_SECONDS
    stateful = True
    stateful_in_groups = False
    can_snapshot = True
    restores_in_place = images.restores_in_place
    publishes = True
    properties: ClassVar[Mapping[str, Property]] = PROPERTIES
    translation: ClassVar[tuple[Rule, ...]] = TRANSLATION
    attributes: ClassVar[Mapping[str, Attribute]] = ATTRIBUTES
    early_attributes: ClassVar[frozenset[str]] = EARLY_ATTRIBUTES
    needs_ready: ClassVar[bool | frozenset[str]] = NEEDS_READY

    # Rules.

    def validate(self, properties: Mapping[str, Value], stack_timeout_seconds: float) -> Sequence[Fault]:
        """Report conflicting properties."""
        return tuple(validation.faults(properties))

    def validate_among(
        self, name: str, properties: Mapping[str, Value], resources: Mapping[str, ResourceDefinition]
    ) -> Sequence[Fault]:
        """Report missing properties."""
        return tuple(validation.faults_as_written(name, properties, resources[name]))

    def implicit_requires(
        self, definition: ResourceDefinition, resources: Mapping[str, ResourceDefinition]
    ) -> Iterable[str]:
        """Require the subnets from which the server may get addresses."""
        return validation.required_subnets(definition, resources)

    def change(
        self, before: Mapping[str, Value], after: Mapping[str, Value], changed: frozenset[str]
    ) -> Change:
        """Apply the update policies of flavor, image and user data."""
        policies = {
            "flavor": after.get("flavor_update_policy"),
            "image": after.get("image_update_policy"),
            "user_data": after.get("user_data_update_policy"),
        }
        if any(name in changed and policy == REPLACE for name, policy in policies.items()):
            return "replace"
        if "image" in changed and not (before.get("image") and after.get("image")):
            return "replace"  # a server boots from its image or from a volume all its life
        return super().change(before, after, changed)

    def equal(self, name: str, before: Value, after: Value) -> bool:
        """Return whether two values of a property are equal."""
        if name == "tags":
            return sorted(before or ()) == sorted(after or ())
        if name == "metadata":
            return as_json_texts(before) == as_json_texts(after)
        return bool(before == after)

    inquire = require_object_store

    # Create and delete.

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Request the server, with its own ports."""
        wanted = interfaces.entries(props)
        own_ports = interfaces.create_own_ports(ctx, props, wanted)
        try:
            server_id = request.request_server(ctx, props, wanted, own_ports)
        except ProviderSilent:  # the server may exist
            raise
        except ProviderError:
            interfaces.abandon_ports(ctx, own_ports)
            raise
        data = steps.stored_data(ctx, props, wanted, own_ports)
        pause = state.build_pause(0.0, build_times.RECENT.fastest(_kind(ctx)))
        seen = state.accepted("is BUILD", seconds=pause)
        if ctx.early_pending:
            known = {"name": request.server_name(ctx, props), **interfaces.early_address(ctx, own_ports)}
            seen = replace(seen, attributes=known)
        return Created(server_id, data, observation=seen)

    def find(self, ctx: Context, token: str) -> str | Sequence[str] | None:
        """Return the servers with the token as tag; without one, the own ports of the attempt."""
        servers = compute(ctx).servers_with_tag(token_tag(token))
        if servers:
            return [server["id"] for server in servers]
        wanted = interfaces.entries(ctx.properties)
        return f"{PORTS_ONLY}{token}" if interfaces.find_own_ports(ctx, wanted) else None

    def grants(self, ctx: Context, physical_id: str) -> Grant | None:
        """Return the access of the agent on the server."""
        return None if physical_id.startswith(PORTS_ONLY) else agent.grant(ctx, physical_id)

    def delete(self, ctx: Context, physical_id: str) -> Observation | None:
        """Delete the server; its own ports follow when it is gone, because neutron keeps ports in use. With
        the deletion policy Snapshot request an image first.
        """
        if ctx.copy_first and state.has_image(compute(ctx).current_server(physical_id)):
            images.request_image(ctx, physical_id)
            return None
        return _delete(ctx, physical_id)

    # Observation.

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Read the server."""
        if physical_id.startswith(PORTS_ONLY):
            return self._observe_ports(ctx)
        nova = compute(ctx)
        shared = ctx.action in ("CREATE", "DELETE", "CHECK")  # a list of a moment ago serves them too
        try:
            server = (
                nova.server(physical_id, young=_is_young(ctx)) if shared else nova.current_server(physical_id)
            )
        except NotListedYet:
            return state.accepted("is not in a list yet")
        if ctx.action == "DELETE":
            return with_request(ctx, physical_id, _deleted(ctx, server))
        if server is None:
            return Observation(exists=False)
        state.require_cell(server)
        observation = state.observed_error(ctx, server) or self._observe_action(ctx, server)
        return _with_values(ctx, with_request(ctx, physical_id, observation), server)

    def _observe_ports(self, ctx: Context) -> Observation:
        """Report own ports without a server as an object in error: it is deleted and created again."""
        if not interfaces.find_own_ports(ctx, interfaces.entries(ctx.properties)):
            return Observation(exists=False)
        return Observation(exists=True, error=NO_SERVER, replaceable=True)

    def _observe_action(self, ctx: Context, server: state.Server) -> Observation:
        """Return whether the action in progress is complete."""
        status, task = state.status_of(server), state.task_of(server)
        match ctx.action:
            case "CREATE" if status == "ACTIVE":
                build_times.RECENT.record(_kind(ctx), server)
                recover = not ctx.data and _has_data(ctx)
                return Observation(exists=True, ready=not recover, step="recover" if recover else "")
            case "CREATE":
                fastest = build_times.RECENT.fastest(_kind(ctx))
                return state.building(server, ctx.elapsed_seconds, fastest)
            case "UPDATE":
                return _observe_update(ctx, server)
            case "SUSPEND" if status == "SUSPENDED" and not task:
                return Observation(exists=True)
            case "RESUME" if status == "ACTIVE" and not task:
                return Observation(exists=True)
            case "SUSPEND" | "RESUME":
                return state.waiting(server)
            case "SNAPSHOT":
                return images.observe_snapshot(ctx)
            case "RELEASE":
                return port_release.observe_release(ctx, server)
            case "RECLAIM" if status == "ACTIVE":
                return port_release.observe_reclaim(ctx, server)
        if status == "ACTIVE":
            return Observation(exists=True)
        reason = f"'status': expected 'ACTIVE', got '{status}'"
        return Observation(exists=True, ready=False, retry_after=state.POLL_SECONDS, reason=reason)

    def is_healthy_after_failure(self, ctx: Context, physical_id: str) -> bool:
        """Return whether a failed server can be kept; wait while nova works on it."""
        server = None if physical_id.startswith(PORTS_ONLY) else compute(ctx).current_server(physical_id)
        if server is None or state.status_of(server) in ("DELETED", "SOFT_DELETED"):
            return False
        if state.is_changing(server):
            raise ProviderChanging(state.waiting(server).reason, "Conflict", retry_after=state.POLL_SECONDS)
        return state.status_of(server) != "ERROR"

    def raw(self, ctx: Context, physical_id: str) -> JsonObject | None:
        """Return nova's view of the server."""
        return compute(ctx).current_server(physical_id)

    def read_attributes(self, ctx: Context, physical_id: str, names: frozenset[str]) -> Mapping[str, Value]:
        """Return live attributes."""
        values: JsonObject = {}
        server = self.raw(ctx, physical_id) if names & {"addresses", "show"} else None
        if "show" in names:
            values["show"] = server
        if "addresses" in names:
            values["addresses"] = None if server is None else live_attributes.addresses(ctx, server)
        if "console_urls" in names:
            values["console_urls"] = live_attributes.console_urls(ctx, physical_id)
        return values

    def published(self, ctx: Context, physical_id: str) -> Mapping[str, Value]:
        """Return the agent's settings and the deployments of the server."""
        return agent.published(ctx, physical_id)

    # Updates and actions.

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        """Request the immediate changes; the others are steps."""
        return Created(physical_id, steps.start_update(ctx, physical_id, props, changed))

    def advance(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], step: str
    ) -> Created | None:
        """Carry out a step of an update or a deletion."""
        if step == images.DELETE:
            _delete(ctx, physical_id)
            return None
        return Created(physical_id, steps.advance(ctx, physical_id, props, step))

    def suspend(self, ctx: Context, physical_id: str) -> None:
        """Suspend the server, unless it is suspended."""
        _request_action(ctx, physical_id, "suspend", "SUSPENDED")

    def resume(self, ctx: Context, physical_id: str) -> None:
        """Resume the server, unless it is active."""
        _request_action(ctx, physical_id, "resume", "ACTIVE")

    def snapshot(self, ctx: Context, physical_id: str) -> Mapping[str, Value]:
        """Request an image of the server."""
        return {images.IMAGE_ID: images.request_image(ctx, physical_id)}

    def delete_snapshot(self, ctx: Context, snapshot_data: Mapping[str, Value]) -> None:
        """Delete the image."""
        images.delete_image(ctx, snapshot_data.get(images.IMAGE_ID))

    def restored(self, properties: Mapping[str, Value], snapshot: Mapping[str, Value]) -> Mapping[str, Value]:
        """Return the properties with the image of a snapshot."""
        image = snapshot.get(images.IMAGE_ID)
        return {**properties, "image": image} if image else properties

    def release(self, ctx: Context, physical_id: str) -> None:
        """Detach the template's ports and give up fixed addresses, for a replacement."""
        port_release.release(ctx, physical_id)

    def reclaim(self, ctx: Context, physical_id: str, props: Mapping[str, Value]) -> None:
        """Attach the ports again, and take back the addresses."""
        port_release.reclaim(ctx, physical_id)


def _kind(ctx: Context) -> build_times.Kind:
    """Return the kind of a server whose builds take about the same time."""
    region = "" if ctx.cloud is None else ctx.cloud.region
    return build_times.Kind(region, str(ctx.properties.get("flavor")), str(ctx.properties.get("image")))


def _delete(ctx: Context, physical_id: str) -> Observation | None:
    """Request the deletion of the server, or of the own ports that are left of it."""
    if not physical_id.startswith(PORTS_ONLY):
        agent.revoke(ctx, physical_id)
        interfaces.release_floating_ips(ctx, ctx.data.get("networks") or interfaces.entries(ctx.properties))
        if compute(ctx).delete_server(physical_id):
            return state.accepted("is being deleted")
    interfaces.remove_ports(ctx, interfaces.own_port_ids(ctx))
    return None


def _has_data(ctx: Context) -> bool:
    """Return whether the data that `create` stores are needed later."""
    return bool(interfaces.entries(ctx.properties)) or agent.has_agent(ctx.properties)


def _deleted(ctx: Context, server: state.Server | None) -> Observation:
    """Observe a deletion: nova's DELETED is not absent yet, a soft deletion is complete. Own ports follow."""
    status = "" if server is None else state.status_of(server)
    if server is None or status in state.GONE:
        left = interfaces.remaining_ports(ctx)
        return Observation(exists=bool(left), ready=False, step="delete_ports" if left else "")
    if ctx.copy_first and state.has_image(server):
        return images.observe_final_image(ctx)
    if status == "ERROR" and not state.task_of(server):
        return Observation(exists=True, ready=False, error=state.fault_text(server))
    return state.waiting(server, seconds=state.BUILD_POLL_SECONDS)


def _is_young(ctx: Context) -> bool:
    return ctx.action == "CREATE" and ctx.elapsed_seconds < state.YOUNG_SECONDS


def _observe_update(ctx: Context, server: state.Server) -> Observation:
    status = state.status_of(server)
    if state.task_of(server) or status not in (*state.STEADY, "VERIFY_RESIZE"):
        return state.waiting(server)
    detaching = ctx.data.get("detach") if ctx.data.get("detaching") else ()
    if detaching:
        attached = {interface["port_id"] for interface in compute(ctx).interfaces(server["id"])}
        if attached.intersection(detaching):
            return Observation(exists=True, ready=False, reason="interfaces are being detached")
    error = "" if status == "VERIFY_RESIZE" else state.failed_resize(ctx.data, server)
    if error:
        return Observation(exists=True, error=error)
    step = state.update_step(ctx.data, server)
    ready = not step and status != "VERIFY_RESIZE"
    return Observation(exists=True, ready=ready, step=step, retry_after=state.POLL_SECONDS)


def _with_values(ctx: Context, observation: Observation, server: state.Server) -> Observation:
    """Add attributes and actual properties to an observation."""
    shown = live_attributes.recorded(server)
    if not observation.ready and not shown["first_address"]:
        del shown["first_address"]  # not known yet
        if ctx.early_pending:
            shown |= interfaces.early_address(ctx, ctx.data.get("ports") or ())
    if agent.has_agent(ctx.properties):
        shown["os_collect_config"] = agent.settings(ctx, ctx.properties)
    name = server.get("name")
    actual: JsonObject = {
        "name": ctx.properties.get("name") if name == request.server_name(ctx, ctx.properties) else name,
        "metadata": server.get("metadata") or {},
        "flavor": state.flavor_of(server),
    }
    if ctx.properties.get("tags"):
        actual["tags"] = own_tags(server)
    if ctx.action == "CHECK" and observation.ready:
        missing = interfaces.without_interface(ctx, server)
        if missing:
            given = enumerate(ctx.properties["networks"])
            actual["networks"] = [entry for index, entry in given if index not in missing]
    return replace(observation, attributes=shown, properties=actual)


def _request_action(ctx: Context, server_id: str, action: str, target: str) -> None:
    """Request an action. A conflict is no error if the server is, or is getting, as desired."""
    try:
        compute(ctx).act(server_id, action)
    except ProviderConflict:
        server = compute(ctx).current_server(server_id) or {}
        if state.status_of(server) != target and not state.task_of(server):
            raise
