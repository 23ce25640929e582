"""The admission of creates to a service."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from orchestrator.resources.base import Context, ResourceType
from orchestrator.resources.openstack.connection import openstack


class AdmittedType(ResourceType):
    """A type whose creates begin when its service has a place and a connection for their requests."""

    def admit(self, ctx: Context) -> AbstractContextManager[None]:
        """Reserve a place and a connection for the create request.

        Raises:
            ProviderBusy: there is none; nothing was sent.
        """
        return nullcontext() if ctx.cloud is None else openstack(ctx).reserved(self.service)
