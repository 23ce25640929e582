"""OS::Cinder::VolumeAttachment (docs/internals/resource-types.md §C 11).

Nova attaches, cinder shows the progress: an attachment is complete when both agree. A failed attachment is
accepted by nova, and only visible because the volume becomes available again. The id of an attachment is that
of the volume, so that a lost create is found among the volumes of the server.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import ClassVar, Final, NamedTuple

from orchestrator.errors import ProviderChanging, ProviderConflict, ProviderError, ProviderInUse
from orchestrator.json_types import JsonObject
from orchestrator.resources.base import Context, Created, Observation, Property, Value
from orchestrator.resources.openstack.cinder import failed_detachments as failed
from orchestrator.resources.openstack.cinder import volume_state as state
from orchestrator.resources.openstack.cinder.base import CinderType, block_storage
from orchestrator.resources.openstack.connection import openstack
from orchestrator.resources.openstack.failure_causes import with_request
from orchestrator.schema.constraints import Custom
from orchestrator.schema.translation import Resolve, Rule

REMOVE: Final = "remove_unknown_attachment"  # step: nova does not know the attachment
REPEAT: Final = "repeat_detachment"  # step: nova has given it up
LOST: Final = (
    "Nova has lost the request to attach volume {0.volume} to server {0.server}: the volume stays reserved. "
    "An administrator can end the reservation; the delete of the server ends it, too"
)
TEMPORARY: Final = frozenset({"BadRequest", "Conflict"})


class Pair(NamedTuple):
    """A server and a volume."""

    server: str
    volume: str


class VolumeAttachment(CinderType):
    """Attaches a volume to a server."""

    name = "OS::Cinder::VolumeAttachment"
    lists = "volumes"
    shares_objects = True
    support_version = "2014.1"
    properties: ClassVar[Mapping[str, Property]] = {
        "instance_uuid": Property(
            "string",
            "Id of the server.",
            required=True,
            update_allowed=True,
            constraints=(Custom("nova.server"),),
        ),
        "volume_id": Property(
            "string",
            "Id of the volume.",
            required=True,
            update_allowed=True,
            constraints=(Custom("cinder.volume"),),
        ),
        "mountpoint": Property(
            "string", "Device name in the guest; a wish that many hypervisors ignore.", update_allowed=True
        ),
    }
    needs_ready: ClassVar[bool | frozenset[str]] = True  # an active server and an available volume
    translation: ClassVar[tuple[Rule, ...]] = (
        Resolve(("instance_uuid",), "nova.server"),
        Resolve(("volume_id",), "cinder.volume"),
    )

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Request the attachment."""
        pair = _pair(props)
        return Created(_attach(ctx, pair, props.get("mountpoint")), _data(pair))

    def find(self, ctx: Context, token: str) -> str | None:
        """Return the id if the volume is attached to the server."""
        pair = _pair(ctx.properties)
        return pair.volume if _is_listed(ctx, pair) else None

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Compare both services."""
        pair = _stored(ctx)
        if ctx.action == "DELETE" or ctx.data.get("detaching"):
            left = with_request(ctx, pair.server, _detached(ctx, pair), "detach_volume")
            if ctx.action == "DELETE" or left.exists:
                return left
            return Observation(exists=True, ready=False, step="attach")
        if ctx.listed is not None and pair.volume in ctx.listed:
            volume = ctx.listed[pair.volume]
            if state.status_of(volume) == "in-use" and pair.server in state.servers_of(volume):
                return Observation(exists=True)  # nova is asked when cinder shows no attachment
        else:
            volume = block_storage(ctx).current_volume(pair.volume)
        if volume is None:
            return Observation(exists=False)
        return with_request(ctx, pair.server, _attached(ctx, pair, volume), "attach_volume")

    def list_objects(self, ctx: Context) -> Iterable[tuple[str, Value]]:
        """Yield the volumes of the project; the id of an attachment is its volume's."""
        return block_storage(ctx).all_observed("/volumes/detail", "volumes")

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        """Detach; the new attachment is a further step."""
        pair = _stored(ctx)
        _detach(ctx, pair)
        return Created(physical_id, {**_data(pair), "detaching": True})

    def advance(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], step: str
    ) -> Created | None:
        """Attach the volume after an update, or repair a detachment."""
        if step == REMOVE:
            failed.remove_unknown_attachments(ctx, _stored(ctx).volume)
            return None
        if step == REPEAT:
            block_storage(ctx).end_detaching(_stored(ctx).volume)
            _detach(ctx, _stored(ctx))
            return None
        pair = _pair(props)
        if _is_listed(ctx, pair):  # an earlier attempt
            return Created(pair.volume, _data(pair))
        return Created(_attach(ctx, pair, props.get("mountpoint")), _data(pair))

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Request the detachment."""
        _detach(ctx, _stored(ctx))

    def raw(self, ctx: Context, physical_id: str) -> JsonObject | None:
        """Return nova's view of the attachment."""
        pair = _stored(ctx)
        listed = openstack(ctx).compute.volume_attachments(pair.server)
        return next((item for item in listed if item.get("volumeId") == pair.volume), None)


def _pair(props: Mapping[str, Value]) -> Pair:
    return Pair(props.get("instance_uuid") or "", props.get("volume_id") or "")


def _stored(ctx: Context) -> Pair:
    """Return the attached pair: the stored one, which an update has not changed yet."""
    if "server" in ctx.data:
        return Pair(ctx.data["server"], ctx.data["volume"])
    return _pair(ctx.properties)


def _data(pair: Pair) -> JsonObject:
    return {"server": pair.server, "volume": pair.volume}


def _attach(ctx: Context, pair: Pair, device: str | None) -> str:
    """Request the attachment; while the volume or the server is busy, the request is repeated."""
    request = {"volumeId": pair.volume, **({"device": device} if device else {})}
    try:
        return str(openstack(ctx).compute.attach_volume(pair.server, request).get("id") or pair.volume)
    except ProviderError as error:
        if error.kind not in TEMPORARY:
            raise
        volume = block_storage(ctx).current_volume(pair.volume)
        status = "missing" if volume is None else state.status_of(volume)
        if status in state.TRANSIENT:
            raise ProviderChanging(_told(status, error), retry_after=state.POLL_SECONDS) from error
        if status == "in-use" and not _is_multiattach(volume):
            raise ProviderInUse(_told(status, error), retry_after=state.POLL_SECONDS) from error
        if isinstance(error, ProviderConflict) and status == "available":  # the server is busy
            raise ProviderInUse(str(error), error.kind, retry_after=state.POLL_SECONDS) from error
        raise


def _detach(ctx: Context, pair: Pair) -> None:
    """Request the detachment, unless it is in progress or complete."""
    try:
        openstack(ctx).compute.detach_volume(pair.server, pair.volume)
    except ProviderError as error:
        if error.kind not in TEMPORARY:
            raise
        volume = block_storage(ctx).current_volume(pair.volume)
        if volume is None or state.status_of(volume) in ("detaching", "available") or failed.is_lost(volume):
            return
        is_attaching = state.status_of(volume) in state.ATTACHING  # an earlier request is not carried out yet
        busy = ProviderChanging if is_attaching else ProviderInUse
        raise busy(str(error), error.kind, retry_after=state.POLL_SECONDS) from error


def _told(status: str, error: ProviderError) -> str:
    return f"volume is {status}: {error}"


def _is_multiattach(volume: state.Volume | None) -> bool:
    return bool(volume and volume.get("multiattach"))


def _is_listed(ctx: Context, pair: Pair) -> bool:
    return failed.is_listed(ctx, pair.server, pair.volume)


def _attached(ctx: Context, pair: Pair, volume: state.Volume) -> Observation:
    status = state.status_of(volume)
    if status in state.TRANSIENT:
        return _attaching(ctx, pair, volume)
    if status == "in-use" and pair.server in state.servers_of(volume) and _is_listed(ctx, pair):
        return Observation(exists=True)
    if ctx.action == "CHECK" or status == "available":
        exists = ctx.action in ("CREATE", "UPDATE")
        error = f'Volume attachment failed - Unknown status {status} due to "Unknown"' if exists else ""
        return Observation(exists=exists, error=error, replaceable=ctx.action == "CREATE")
    if status == "in-use":  # one of the services is late
        return state.waiting(volume)
    error = f'Volume attachment failed - Unknown status {status} due to "Unknown"'
    return Observation(exists=True, error=error, replaceable=ctx.action == "CREATE")


def _attaching(ctx: Context, pair: Pair, volume: state.Volume) -> Observation:
    """Return the progress of an attachment; nova does not know one that has failed."""
    observation = state.waiting(volume)
    requested = ctx.action in ("CREATE", "UPDATE") and ctx.elapsed_seconds > failed.STUCK_SECONDS
    if not requested or state.status_of(volume) not in state.ATTACHING:
        return observation
    if not _is_listed(ctx, pair):
        return replace(observation, step=REMOVE)
    return replace(observation, error=LOST.format(pair)) if failed.is_lost(volume) else observation


def _detached(ctx: Context, pair: Pair) -> Observation:
    """Return whether both services show no attachment, or the step that repairs the detachment."""
    volume = block_storage(ctx).current_volume(pair.volume)
    if volume is None:
        return Observation(exists=False)
    if failed.is_lost(volume):
        return Observation(exists=False)  # the server never had it
    if pair.server not in state.servers_of(volume) and state.status_of(volume) != "detaching":
        return Observation(exists=_is_listed(ctx, pair), ready=False, retry_after=state.POLL_SECONDS)
    observation = state.waiting(volume)
    if ctx.elapsed_seconds <= failed.STUCK_SECONDS:
        return observation
    if pair.server in state.servers_of(volume) and not _is_listed(ctx, pair):
        return replace(observation, step=REMOVE)
    if failed.is_given_up(ctx, pair.server, volume):
        return replace(observation, step=REPEAT)
    if state.status_of(volume) == "in-use":
        return replace(observation, error="Volume detachment failed - the volume is still in use")
    return observation
