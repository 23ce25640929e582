"""The request of a failed operation on a server.

A server in error shows a message for users, and a volume that is not attached shows none. The cause is in
nova's logs, where an operator finds it by the id of the request.
"""

from __future__ import annotations

from dataclasses import replace

from orchestrator.clients.openstack.errors import with_request_id
from orchestrator.errors import ProviderError
from orchestrator.resources.base import Context, Observation
from orchestrator.resources.openstack.connection import openstack


def with_request(ctx: Context, server_id: str, seen: Observation, action: str = "") -> Observation:
    """Add the id of a server's latest request for an action, by default for any, to the error of an
    observation.

    A check reports the state of an object only: its cause may be old. Without an answer of nova, the
    observation is unchanged.
    """
    if not seen.error or seen.busy or ctx.action == "CHECK":
        return seen
    try:
        latest = openstack(ctx).compute.last_action(server_id, action) or {}
    except ProviderError:
        return seen
    return replace(seen, error=with_request_id(seen.error, latest.get("request_id")))
