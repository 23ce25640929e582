"""The cloud of a verb."""

from __future__ import annotations

from orchestrator.clients.openstack.cloud import OpenStack
from orchestrator.resources.base import Context


def openstack(ctx: Context) -> OpenStack:
    """Return the services of the stack's cloud, called with the stack's credential.

    Raises:
        ProviderError: there is no cloud.
    """
    return OpenStack(ctx.cloud, ctx.deadline_seconds, owner=ctx.location.stack_id)
