"""The causes of failed operations: cinder keeps messages for users beside the status of an object.

A volume in error shows no cause. The messages name it, with the id of the request.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from orchestrator.clients.openstack.errors import with_request_id
from orchestrator.resources.base import Context, Observation
from orchestrator.resources.openstack.cinder.base import block_storage
from orchestrator.resources.openstack.creation_times import is_created_by
from orchestrator.resources.openstack.failure_causes import explanation

UNKNOWN: Final = '"Unknown"'  # cause in Heat's texts


def explain(ctx: Context, object_id: str, seen: Observation) -> Observation:
    """Add the causes of a failed operation on a volume or a backup to an observation.

    A check reports the state of an object only: its cause may be old. Without messages, and without an
    answer to the request for them, the observation is unchanged.
    """
    if not seen.error or ctx.action == "CHECK":
        return seen
    messages = explanation(lambda: block_storage(ctx).messages(object_id)) or ()
    recent = [message for message in messages if is_created_by(ctx, message.get("created_at"))]
    return replace(seen, error=explained(seen.error, recent))


def explained(error: str, messages: Sequence[Mapping[str, Any]]) -> str:
    """Return an error with the texts of messages, the newest of which is the first, and the id of the latest
    request.
    """
    texts = [str(message["user_message"]) for message in reversed(messages) if message.get("user_message")]
    if not texts:
        return error
    causes = "; ".join(dict.fromkeys(texts))  # a scheduler tries other backends: the same text several times
    said = error.replace(UNKNOWN, f'"{causes}"') if UNKNOWN in error else f"{error}: {causes}"
    return with_request_id(said, messages[0].get("request_id"))
