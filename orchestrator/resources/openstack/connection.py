"""The cloud of a verb."""

from __future__ import annotations

from typing import Final

from orchestrator.clients.openstack.cloud import OpenStack
from orchestrator.resources.base import Context

# A list of this age still distinguishes created from deleted objects. The absence of an object is observed
# anew, unless it is being deleted.
UNAMBIGUOUS: Final = frozenset({"CREATE", "DELETE"})
LAG_SECONDS: Final = 1.0


def openstack(ctx: Context) -> OpenStack:
    """Return the services of the stack's cloud, called with the stack's credential.

    Raises:
        ProviderError: there is no cloud.
    """
    old_enough = ctx.action in UNAMBIGUOUS and ctx.elapsed_seconds > LAG_SECONDS
    return OpenStack(
        ctx.cloud,
        ctx.deadline_seconds,
        owner=ctx.location.tree or ctx.location.stack_id,
        lag_seconds=LAG_SECONDS if old_enough else 0.0,
        # An absence is to be seen soon: what the object used is deleted after it.
        max_lag_seconds=ctx.elapsed_seconds if old_enough and ctx.action == "CREATE" else 0.0,
        deleting=ctx.action == "DELETE",
        listed=ctx.listed,
        calls=ctx.calls,
    )
