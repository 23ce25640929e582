"""Test::Thing: a resource that really is somewhere else, and misbehaves on demand (`server.py` says how)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import httpx

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

LOOK_AGAIN_SECONDS = 0.2


class Thing(ResourceType):
    """A thing on the server at THING_URL."""

    name = "Test::Thing"
    calls_out = True
    flight_seconds = 3.0  # a request that was sent is served at once; `slow` beyond this breaks that promise
    ready_timeout_seconds = float(os.environ.get("THING_READY_SECONDS", "0")) or None
    properties = {
        "value": Property("string", "Any text.", default="", update_allowed=True),
        "delay": Property("number", "Seconds from being made to being ready.", default=0),
        "slow": Property("number", "Seconds the request for it takes before it is made.", default=0),
        "slow_after": Property("number", "Seconds the request takes after it was made.", default=0),
        "slow_update": Property(
            "number", "Seconds a change of it takes before it is carried out.", default=0, update_allowed=True
        ),
        "fail_times": Property("integer", "How many requests with one token are refused as busy.", default=0),
        "error": Property("boolean", "Whether it goes to an error for good.", default=False),
        "error_times": Property(
            "integer", "How many things of the name err, and are to be replaced.", default=0
        ),
        "silent": Property(
            "boolean", "Whether the request is swallowed: nothing made, no answer.", default=False
        ),
    }
    attributes = {
        "value": Attribute("The text it was given.", type="string"),
        "serial": Attribute("Its number among all things ever made.", type="integer"),
    }

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Ask for a thing; asking twice makes two."""
        body = {**props, "token": ctx.token, "name": ctx.physical_name}
        return Created(physical_id=call(ctx, "POST", "/things", body).json()["id"])

    def find(self, ctx: Context, token: str) -> str | None:
        """Return the first thing made with this token."""
        result = call(ctx, "GET", f"/things?token={token}&name={ctx.physical_name}").json()
        return result[0]["id"] if result else None

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Look at it."""
        answer = call(ctx, "GET", f"/things/{physical_id}", missing=True)
        if answer.status_code == httpx.codes.NOT_FOUND:
            return Observation(exists=False)
        thing = answer.json()
        if thing["status"].startswith("error"):
            return Observation(
                exists=True, error=f"{thing['name']} broke", replaceable=thing["status"] == "error once"
            )
        return Observation(
            exists=True,
            ready=thing["status"] == "ready",
            attributes={"value": thing["value"], "serial": thing["serial"]},
            properties={"value": thing["value"]},
            retry_after=LOOK_AGAIN_SECONDS,
        )

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        """Give it another value."""
        body = {"value": props["value"], "token": ctx.token, "slow": props.get("slow_update") or 0}
        call(ctx, "PUT", f"/things/{physical_id}", body)
        return Created(physical_id)

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Ask for its removal; already gone is fine."""
        call(ctx, "DELETE", f"/things/{physical_id}", missing=True)


def call(ctx: Context, method: str, path: str, body: Any = None, *, missing: bool = False) -> httpx.Response:
    """Call the server within the time a call may take; with `missing` a 404 is an answer."""
    try:
        with httpx.Client(
            base_url=os.environ["THING_URL"], timeout=ctx.deadline_seconds, trust_env=False
        ) as client:
            answer = client.request(method, path, json=body)
    except (httpx.ConnectError, httpx.ConnectTimeout) as error:
        raise ProviderBusy(f"the things' server cannot be reached: {error!r}") from error
    except httpx.TransportError as error:  # it was asked, and may still do it
        raise ProviderSilent(f"the things' server cannot be reached: {error!r}") from error
    if answer.status_code == httpx.codes.SERVICE_UNAVAILABLE:
        raise ProviderBusy("the things' server is busy")
    if answer.is_error and not (missing and answer.status_code == httpx.codes.NOT_FOUND):
        raise ProviderError(f"the things' server said {answer.status_code}: {answer.text}", kind="ThingError")
    return answer
