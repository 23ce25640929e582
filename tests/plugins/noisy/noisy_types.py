"""Noisy::Server, Noisy::Volume and Noisy::Network: objects of three services of the noisy cloud.

The module follows docs/plugins.md and uses no other interface of the orchestrator.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

import noisy_client as cloud

from orchestrator.errors import ProviderBusy, ProviderError, ProviderSilent
from orchestrator.resources.base import (
    Attribute,
    Context,
    Created,
    Observation,
    Property,
    ResourceType,
    Value,
)

OBSERVE_SECONDS = 0.2  # between two observations of an unfinished operation


@contextmanager
def translated() -> Iterator[None]:
    """Translate the errors of the cloud: unreachable, without an answer, or rejected."""
    try:
        yield
    except (cloud.ServiceUnavailable, cloud.OverQuota) as error:
        raise ProviderBusy(str(error)) from error
    except cloud.NoAnswer as error:
        raise ProviderSilent(str(error)) from error
    except cloud.CloudError as error:
        raise ProviderError(str(error), kind="CloudError") from error


class CloudObject(ResourceType):
    """The verbs of every type of the noisy cloud."""

    flight_seconds = 1.0
    service: ClassVar[str]
    replaceable: ClassVar[bool] = True  # whether an object in error is deleted and created again

    attributes: ClassVar = {
        "label": Attribute("Label of the object.", type="string"),
        "serial": Attribute("Number of the object among all objects of the cloud.", type="integer"),
    }

    def call(self, ctx: Context, verb: str, id: str = "", **body: Any) -> dict[str, Any]:
        """Send a request in the tenant of the stack's project."""
        with translated():
            return cloud.request(ctx.project_id, self.service, verb, id, seconds=ctx.deadline_seconds, **body)

    def lookup(self, ctx: Context, verb: str, id: str = "", **body: Any) -> dict[str, Any] | None:
        """Send a request; None if the object does not exist."""
        with translated():
            try:
                return cloud.request(
                    ctx.project_id, self.service, verb, id, seconds=ctx.deadline_seconds, **body
                )
            except cloud.NotFound:
                return None

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Request an object with the request token; a second request creates a second object."""
        made = self.call(
            ctx, "create", token=ctx.token, name=ctx.name, owner=ctx.physical_name, properties=dict(props)
        )
        return Created(made["id"])

    def find(self, ctx: Context, token: str) -> str | None:
        """Return the object of an earlier request with this token."""
        found = self.lookup(ctx, "find", token=token, name=ctx.name, properties=dict(ctx.properties))
        return found["id"] if found else None

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Read the state of the object."""
        item = self.lookup(ctx, "show", physical_id)
        if item is None:
            return Observation(exists=False)
        state = item["state"]
        if state == "ERROR":
            error = f"{self.service} object {physical_id} is in error"
            return Observation(exists=True, error=error, replaceable=self.replaceable)
        ready = state == ("SUSPENDED" if ctx.action == "SUSPEND" else "ACTIVE")
        return Observation(
            exists=True,
            ready=ready or (ctx.action == "CHECK" and state == "SUSPENDED"),
            attributes={"label": item["properties"].get("label", ""), "serial": item["serial"]},
            properties=item["properties"],
            retry_after=OBSERVE_SECONDS,
            reason="" if ready else f"{self.service} object {physical_id} is {state}",
        )

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        """Request new values of the changed properties."""
        self.call(ctx, "update", physical_id, properties={name: props[name] for name in changed})
        return Created(physical_id)

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Request the deletion; a missing object is no error."""
        self.lookup(ctx, "delete", physical_id)


class Server(CloudObject):
    """A server of the service `compute`; an object in error is deleted and created again."""

    name = "Noisy::Server"
    service = "compute"
    properties: ClassVar = {
        "label": Property("string", "Any text.", default="", update_allowed=True),
        "flavor": Property("string", "Size of the server; a change replaces it.", default="small"),
        "volume": Property("string", "Id of an attached volume.", default="", update_allowed=True),
    }

    def suspend(self, ctx: Context, physical_id: str) -> None:
        """Stop the server."""
        self.call(ctx, "suspend", physical_id)

    def resume(self, ctx: Context, physical_id: str) -> None:
        """Start the server."""
        self.call(ctx, "resume", physical_id)


class Volume(CloudObject):
    """A volume of the service `storage`; a volume in error is kept, because it may contain data."""

    name = "Noisy::Volume"
    service = "storage"
    replaceable = False
    properties: ClassVar = {
        "label": Property("string", "Any text.", default="", update_allowed=True),
        "gigabytes": Property("integer", "Size; a change replaces the volume.", default=1),
    }


class Network(CloudObject):
    """A network of the service `network`, whose client raises the exceptions of sockets untranslated."""

    name = "Noisy::Network"
    service = "network"
    properties: ClassVar = {"label": Property("string", "Any text.", default="", update_allowed=True)}

    def call(self, ctx: Context, verb: str, id: str = "", **body: Any) -> dict[str, Any]:
        """Send a request; errors of the connection are those of Python."""
        with untranslated():
            return super().call(ctx, verb, id, **body)

    def lookup(self, ctx: Context, verb: str, id: str = "", **body: Any) -> dict[str, Any] | None:
        """Send a request; errors of the connection are those of Python."""
        with untranslated():
            return super().lookup(ctx, verb, id, **body)


@contextmanager
def untranslated() -> Iterator[None]:
    """Raise the exceptions of a client without errors of its own."""
    try:
        yield
    except ProviderSilent as error:
        raise TimeoutError(str(error)) from None
    except ProviderBusy as error:
        raise ConnectionRefusedError(str(error)) from None
