"""What an agent on a machine is told of how to reach us: addresses, and credentials of its own."""

from __future__ import annotations

from typing import Any

from orchestrator.resources.base import Context, Grant
from orchestrator.resources.ec2_signatures import signal_url as signed_url
from orchestrator.resources.software_api import Credentials
from orchestrator.resources.stack_context import StackLocation, StackUser


def signal_url(place: StackLocation, credentials: Credentials) -> str:
    """Return where a resource can be signalled with nothing else in hand."""
    return signed_url(place, credentials.key, credentials.secret)


def access(credentials: Credentials, user: StackUser | None = None) -> Grant:
    """Return the access that an agent has with its credentials: to the resource it is told of."""
    of_user = None if user is None else user.id
    return Grant(credentials.key, credentials.secret, credentials.token, keystone_user=of_user)


def signing_in(user: StackUser) -> dict[str, Any]:
    """Return what it takes to get a token of Keystone's as the user of a resource."""
    return {
        "auth_url": user.auth_url,
        "username": user.name,
        "user_id": user.id,
        "password": user.password,
        "project_id": user.project_id,
        "domain_id": user.domain_id,
        "region_name": user.region_name,
    }


def api_access(ctx: Context, credentials: Credentials, *, make: bool = False) -> dict[str, Any]:
    """Return what an agent calls the API with: the resource's user at Keystone, if it has one or may have one
    made; else its password is a token that opens this one resource.
    """
    if ctx.users is not None:
        user = ctx.users.make() if make else ctx.users.held()
        if user is not None:
            return signing_in(user)
    place = ctx.software.place
    return {
        "auth_url": f"{place.endpoint}/v1",
        "username": ctx.physical_name,
        "user_id": credentials.key,
        "password": credentials.token,
        "project_id": place.project_id,
        "region_name": None,
    }


def polling(ctx: Context, transport: str, server_id: str) -> dict[str, Any]:
    """Return what an agent is told of where to read the metadata of its machine."""
    place, credentials = ctx.software.place, ctx.software.credentials(server_id)
    if transport == "POLL_SERVER_HEAT":
        access = api_access(ctx, credentials)
        del access["username"]
        access.pop("domain_id", None)  # who is named by an id needs none
        return {
            **access,
            "stack_id": place.stack_path,
            "resource_name": place.resource,
        }
    return {
        "metadata_url": f"{place.endpoint}/v1/",
        "access_key_id": credentials.key,
        "secret_access_key": credentials.secret,
        "stack_name": place.stack_name,
        "path": f"{place.resource}.Metadata",
    }
