"""Results of deployments through an object store (TEMP_URL_SIGNAL).

A deployment has a container. Each publication has its own object in it, so that a late result of an
earlier action is not taken for the result of a newer action.
"""

from __future__ import annotations

import json

from orchestrator.resources.base import Context, Value
from orchestrator.resources.builtin.software_io import STATUS_CODE, STDERR
from orchestrator.resources.builtin.temporary_urls import (
    MAX_SIGNAL_BYTES,
    TOO_LARGE,
    object_store,
    place_of,
    temporary_url,
)
from orchestrator.resources.software_api import Deployment

NO_OBJECT = "The result is not a JSON object."


def container_of(ctx: Context) -> str:
    """Return the container of a deployment."""
    return ctx.physical_name


def signal_url(ctx: Context, action: str) -> str:
    """Return the URL at which the agent puts the result of an action."""
    name = ctx.software.publication(action).replace(" ", "-")
    return temporary_url(ctx, container_of(ctx), name)


def result(ctx: Context, deployment: Deployment) -> dict[str, Value] | None:
    """Return the result that the agent has put, None before. Anything but a JSON object is a failure."""
    config = ctx.software.config(deployment.config_id)
    inputs = {} if config is None else {item["name"]: item.get("value") for item in config.draft.inputs}
    _, container, name = place_of(str(inputs.get("deploy_signal_id") or ""))
    content = object_store(ctx).object_content(container, name) if name else None
    if not content:
        return None
    if len(content) > MAX_SIGNAL_BYTES:
        return {STATUS_CODE: 1, STDERR: TOO_LARGE}
    try:
        details = json.loads(content)
    except ValueError:
        details = None
    return details if isinstance(details, dict) else {STATUS_CODE: 1, STDERR: NO_OBJECT}
