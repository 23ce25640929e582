"""Decisions from an observed server: is an operation complete, has it failed, its next step. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from orchestrator.errors import ProviderUnreachable
from orchestrator.resources.base import Context, Observation
from orchestrator.resources.openstack.connection import LAG_SECONDS
from orchestrator.resources.openstack.creation_times import parsed_time

Server = Mapping[str, Any]

POLL_SECONDS: Final = 3.0
BUILD_POLL_SECONDS: Final = 2.0
BUILD_POLL_SHARE: Final = 0.05  # of the time since the request, if that is more
YOUNG_SECONDS: Final = 60.0  # in which a server need not be in the last list
# Nova shows ERROR between two attempts of a build, without a task and for some seconds.
ERROR_SECONDS: Final = 5.0  # until an error with a fault is final
BARE_ERROR_SECONDS: Final = 60.0  # until an error without a fault is final

WAITING: Final = frozenset(
    {
        "BUILD",
        "HARD_REBOOT",
        "MIGRATING",
        "PASSWORD",
        "REBOOT",
        "REBUILD",
        "RESCUE",
        "RESIZE",
        "REVERT_RESIZE",
        "SHUTOFF",
        "SUSPENDED",
        "PAUSED",
        "VERIFY_RESIZE",
        "SHELVED",
        "SHELVED_OFFLOADED",
    }
)
STEADY: Final = frozenset({"ACTIVE", "SHUTOFF", "PAUSED", "SUSPENDED"})  # in which an update may end
# A server stays in `deleting` for ever if nova's message to its compute service was lost: the API answers
# before the message is delivered. Another delete is harmless, and sends it again.
DELETE_STALLED_SECONDS: Final = 300.0
GONE: Final = frozenset({"SOFT_DELETED"})  # deleted, and kept for a while by the operator's setting


def status_of(server: Server) -> str:
    """Return the status without an addition in parentheses, which some clouds append."""
    return str(server.get("status") or "").partition("(")[0].strip().upper()


def task_of(server: Server) -> str | None:
    """Return the task in progress."""
    task: str | None = server.get("OS-EXT-STS:task_state")
    return task


def is_changing(server: Server) -> bool:
    """Return whether nova builds the server, or carries out another task."""
    return status_of(server) == "BUILD" or bool(task_of(server))


def fault_text(server: Server) -> str:
    """Return Heat's text for a server in error."""
    fault = server.get("fault") or {}
    message, code = fault.get("message", "Unknown"), fault.get("code", "Unknown")
    return f'Went to status {status_of(server)} due to "Message: {message}, Code: {code}"'


def is_final_error(server: Server, now: datetime | None = None) -> bool:
    """Return whether nova does not continue with a server in ERROR."""
    if status_of(server) != "ERROR" or task_of(server):
        return False
    fault = server.get("fault") or {}
    times = (parsed_time(server.get("updated")), parsed_time(fault.get("created")))
    since = max((time for time in times if time), default=None)
    if since is None:
        return True
    age = ((now or datetime.now(UTC)) - since).total_seconds()
    return age >= (ERROR_SECONDS if fault else BARE_ERROR_SECONDS)


def has_image(server: Server | None) -> bool:
    """Return whether the server can have an image: not in error, and not deleted."""
    if server is None or task_of(server) == "deleting":
        return False
    return status_of(server) not in ("ERROR", "DELETED", *GONE)


def waiting(server: Server, *, seconds: float = POLL_SECONDS) -> Observation:
    """Return the observation of an operation in progress."""
    task = task_of(server)
    reason = f"server is {status_of(server)}" + (f" ({task})" if task else "")
    return Observation(exists=True, ready=False, retry_after=seconds, reason=reason)


def building(server: Server, elapsed_seconds: float, fastest_seconds: float | None) -> Observation:
    """Return the observation of a server in construction. It is observed again when it can be ready, and then
    every few seconds; `fastest_seconds`: of recent builds.
    """
    return waiting(server, seconds=build_pause(elapsed_seconds, fastest_seconds))


def build_pause(elapsed_seconds: float, fastest_seconds: float | None) -> float:
    """Return the seconds until the next observation of a build."""
    remaining = (fastest_seconds or 0.0) + LAG_SECONDS - elapsed_seconds
    if fastest_seconds is not None and remaining > 0:
        return remaining
    return max(BUILD_POLL_SECONDS, BUILD_POLL_SHARE * elapsed_seconds)


def accepted(reason: str, *, seconds: float = BUILD_POLL_SECONDS) -> Observation:
    """Return the observation of a server whose create or delete nova has accepted and begins."""
    return Observation(exists=True, ready=False, retry_after=seconds, reason=f"server {reason}")


def observed_error(ctx: Context, server: Server) -> Observation | None:
    """Return the observation of a server in error, None for any other server."""
    status = status_of(server)
    if status == "ERROR":
        tried_again = ctx.action in ("CREATE", "UPDATE") and not is_final_error(server)
        if tried_again or (ctx.action in ("SUSPEND", "RESUME", "SNAPSHOT") and task_of(server)):
            return waiting(server)
        busy = bool(task_of(server))
        return Observation(
            exists=True, error=fault_text(server), replaceable=ctx.action == "CREATE", busy=busy
        )
    if status == "DELETED":
        error = f'Went to status {status} due to "Message: Unknown, Code: Unknown"'
        return Observation(exists=True, error=error, replaceable=ctx.action == "CREATE")
    if status not in WAITING and status != "ACTIVE":
        error = f'{status} - Unknown status {status} due to "Unknown"'
        return Observation(exists=True, error=error, error_kind="ResourceUnknownStatus")
    return None


def require_cell(server: Server) -> None:
    """Nova reports UNKNOWN for the servers of a cell that gives no answer.

    Raises:
        ProviderUnreachable: it does for this server.
    """
    if status_of(server) == "UNKNOWN":
        raise ProviderUnreachable("nova does not know the state of the server: its cell gives no answer")


def update_step(data: Mapping[str, Any], server: Server) -> str:
    """Return the next step of an update, "" if none is left. The server has no task in progress; `data` are
    the changes that the update stored.
    """
    if status_of(server) == "VERIFY_RESIZE":
        return "" if data.get("confirming") else "confirm_resize"
    if data.get("detach") and not data.get("detaching"):
        return "detach_interfaces"
    if data.get("detach") or data.get("attach"):
        return "attach_interfaces"
    if data.get("resize") and flavor_of(server) != data["resize"]:
        return "resize"
    if data.get("rebuild") or (data.get("image") and image_of(server) != data["image"]):
        return "rebuild"
    return ""


def failed_resize(data: Mapping[str, Any], server: Server) -> str:
    """Return the error of a requested resize that had no effect, "" if there is none."""
    flavor = data.get("resize")
    if not flavor or data.get("resizing") != flavor or flavor_of(server) == flavor:
        return ""
    return f"Resizing to '{flavor}' failed, status '{status_of(server)}'"


def flavor_of(server: Server) -> str | None:
    """Return the id of the server's flavor."""
    flavor: str | None = (server.get("flavor") or {}).get("id")
    return flavor


def image_of(server: Server) -> str | None:
    """Return the id of the server's image; a server that boots from a volume has none."""
    image = server.get("image")
    return dict(image).get("id") if image else None
