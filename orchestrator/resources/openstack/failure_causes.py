"""The causes of failed operations: requests to the services that explain an error.

A server in error shows a message for users, and a volume that is not attached shows none. The cause is in
nova's logs, where an operator finds it by the id of the request.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from orchestrator.clients.openstack.errors import with_request_id
from orchestrator.errors import AwaitingBudget, ProviderError
from orchestrator.resources.base import Context, Observation
from orchestrator.resources.openstack.connection import openstack

T = TypeVar("T")


def with_request(ctx: Context, server_id: str, seen: Observation, action: str = "") -> Observation:
    """Add the id of a server's latest request for an action, by default for any, to the error of an
    observation.

    A check reports the state of an object only: its cause may be old. Without an answer of nova, the
    observation is unchanged.
    """
    if not seen.error or seen.busy or ctx.action == "CHECK":
        return seen
    latest = explanation(lambda: openstack(ctx).compute.last_action(server_id, action))
    return replace(seen, error=with_request_id(seen.error, latest.get("request_id"))) if latest else seen


def explanation(ask: Callable[[], T]) -> T | None:
    """Return the answer to a request that explains an error, None without an answer.

    Raises:
        AwaitingBudget: the request waits for its turn; the observation is repeated then.
    """
    try:
        return ask()
    except AwaitingBudget:
        raise
    except ProviderError:
        return None
