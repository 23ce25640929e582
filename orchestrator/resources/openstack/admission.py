"""The admission of creates to a service."""

from __future__ import annotations

from orchestrator.resources.base import Context, ResourceType
from orchestrator.resources.openstack.connection import openstack


class AdmittedType(ResourceType):
    """A type whose creates begin when its service can process their requests soon."""

    def admit(self, ctx: Context) -> None:
        """Refuse a create whose request would wait too long for its turn.

        Raises:
            AwaitingBudget: it would; nothing was sent.
        """
        if ctx.cloud is not None:
            openstack(ctx).require_place(self.service)
