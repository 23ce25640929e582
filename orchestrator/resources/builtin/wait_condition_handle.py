"""OS::Heat::WaitConditionHandle: receives completion signals from servers (docs/internals/resource-types.md
§A8).
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping, Sequence
from typing import Final

from orchestrator.json_types import JsonObject
from orchestrator.resources.base import (
    Attribute,
    Context,
    Created,
    Fault,
    Grant,
    Observation,
    Property,
    Value,
)
from orchestrator.resources.builtin.agent_transport import signing_in
from orchestrator.resources.builtin.wait_handle_base import HEAT, SUCCESS, Handle
from orchestrator.resources.ec2_signatures import access_key, new_secret, new_token, signal_url
from orchestrator.schema.constraints import AllowedValues

TRANSPORTS: Final = (
    "CFN_SIGNAL",
    "TEMP_URL_SIGNAL",
    "HEAT_SIGNAL",
    "NO_SIGNAL",
    "ZAQAR_SIGNAL",
    "TOKEN_SIGNAL",
)
UNSUPPORTED: Final = frozenset({"TEMP_URL_SIGNAL", "ZAQAR_SIGNAL"})


class WaitConditionHandle(Handle):
    """Accepts signals with a token, with a signed URL, or from users of the stack."""

    name = "OS::Heat::WaitConditionHandle"
    support_version = "2014.2"
    keys = HEAT
    properties = {
        "signal_transport": Property(
            "string",
            "How it is signalled: TOKEN_SIGNAL by a token made for it, CFN_SIGNAL at a signed URL, "
            "HEAT_SIGNAL: the API, with dedicated credentials; NO_SIGNAL: no signals, the wait ends at once.",
            default="TOKEN_SIGNAL",
            constraints=(AllowedValues(TRANSPORTS),),
        )
    }
    attributes = {
        "token": Attribute("The token for signals with TOKEN_SIGNAL.", type="string", secret=True),
        "endpoint": Attribute("The URL for signals with TOKEN_SIGNAL.", type="string"),
        "curl_cli": Attribute(
            'A curl command that signals, of TOKEN_SIGNAL; add --data-binary \'{"status": "SUCCESS"}\'.',
            type="string",
            secret=True,
        ),
        "signal": Attribute(
            "The settings for sending signals, as JSON; they depend on the transport.",
            type="string",
            secret=True,
        ),
    }

    def validate(self, properties: Mapping[str, Value], stack_timeout_seconds: float) -> Sequence[Fault]:
        """Refuse the transports by other services."""
        transport = properties.get("signal_transport")
        if transport not in UNSUPPORTED:
            return ()
        return (Fault(f"{transport} is not supported here.", "signal_transport"),)

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Create the credentials of the transport."""
        made: JsonObject = {}
        grant = None
        match props["signal_transport"]:
            case "CFN_SIGNAL":
                key, secret = access_key(ctx.token), new_secret()
                now = dt.datetime.now(dt.UTC)
                made["signal"] = {"alarm_url": signal_url(ctx.location, key, secret, "waitcondition", at=now)}
                grant = Grant(key, secret)
            case "HEAT_SIGNAL" if ctx.users is not None:
                user = ctx.users.make()
                made["signal"] = {"alarm_url": ctx.location.signal_address, **signing_in(user)}
                grant = Grant(keystone_user=user.id)
            case "TOKEN_SIGNAL" | "HEAT_SIGNAL" as transport:
                token = new_token()
                grant = Grant(token=token)
                made["endpoint"], made["token"] = ctx.location.signal_address, token
                made["signal"] = dict(made)
                if transport == "HEAT_SIGNAL":
                    made = {"signal": _credentials(ctx, token)}
            case _:
                made["signal"] = {}
        return Created(ctx.physical_name, made, secret=grant is not None, access=grant)

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Return the signal credentials as attributes."""
        if ctx.action == "DELETE":
            return Observation(exists=False)
        token, endpoint = ctx.data.get("token"), ctx.data.get("endpoint")
        attributes = {
            "token": token,
            "endpoint": endpoint,
            "curl_cli": None if token is None else _curl(token, str(endpoint)),
            "signal": json.dumps(ctx.data.get("signal")),
        }
        return Observation(exists=True, attributes=attributes)

    def completed(self, details: JsonObject, number: int) -> JsonObject:
        """Fill in absent parts: the status is success, and the id is the number of the signal."""
        keys = self.keys
        filled = {
            keys.status: SUCCESS,
            keys.reason: f"Signal {number} received",
            keys.data: None,
            keys.id: number,
        }
        return {**filled, **details}


def _curl(token: str, endpoint: str) -> str:
    return (
        f"curl -i -X POST -H 'X-Auth-Token: {token}' -H 'Content-Type: application/json' "
        f"-H 'Accept: application/json' {endpoint}"
    )


def _credentials(ctx: Context, token: str) -> JsonObject:
    """Return the API credentials: a token, where Heat uses a dedicated user and a password."""
    place = ctx.location
    return {
        "alarm_url": place.signal_address,
        "token": token,
        "username": ctx.physical_name,
        "project_id": place.project_id,
    }
