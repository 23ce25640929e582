"""Settings for the agent on a server: the addresses of this API, and the agent's credentials."""

from __future__ import annotations

from orchestrator.json_types import JsonObject
from orchestrator.resources.base import Context, Grant
from orchestrator.resources.ec2_signatures import signal_url as signed_url
from orchestrator.resources.software_api import Credentials
from orchestrator.resources.stack_context import StackLocation, StackUser


def signal_url(place: StackLocation, credentials: Credentials) -> str:
    """Return the signed URL for signals to a resource."""
    return signed_url(place, credentials.key, credentials.secret)


def access(credentials: Credentials, user: StackUser | None = None) -> Grant:
    """Return the grant for an agent's credentials: access to its own resource."""
    of_user = None if user is None else user.id
    return Grant(credentials.key, credentials.secret, credentials.token, keystone_user=of_user)


def signing_in(user: StackUser) -> JsonObject:
    """Return the parameters for obtaining a Keystone token as the user of a resource."""
    return {
        "auth_url": user.auth_url,
        "username": user.name,
        "user_id": user.id,
        "password": user.password,
        "project_id": user.project_id,
        "domain_id": user.domain_id,
        "region_name": user.region_name,
    }


def api_access(ctx: Context, credentials: Credentials, *, make: bool = False) -> JsonObject:
    """Return the API credentials of an agent: the resource's Keystone user if it has one or may create one,
    otherwise a token as the password, which grants access to this resource only.
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


def polling(ctx: Context, transport: str, server_id: str) -> JsonObject:
    """Return the settings an agent needs for reading the metadata of its server."""
    place, credentials = ctx.software.place, ctx.software.credentials(server_id)
    if transport == "POLL_SERVER_HEAT":
        access = api_access(ctx, credentials)
        del access["username"]
        access.pop("domain_id", None)  # not needed with a user id
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
