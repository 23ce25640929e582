"""Names of a cloud's objects, from the request to the resource: a stand-in for Keystone, and a neutron that
knows only networks.
"""

# ruff: noqa: F811 - fixtures are imported
from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import orjson
import pytest

from orchestrator.errors import InvalidTemplate
from orchestrator.operations.context import Body
from orchestrator.operations.preview.update import preview_update
from orchestrator.resources.base import Context, Created, Observation, Property, ResourceType, Value
from orchestrator.schema.constraints import Custom
from orchestrator.schema.translation import Resolve
from orchestrator.security.keystone import caller_of
from tests.plugins.stand_in_keystone import StandIn, identity  # noqa: F401 - a fixture
from tests.scenarios.world import World

ID = "5a2c3f66-6d5c-4c0f-9f3c-0a7a3f0c1e11"


class Port(ResourceType):
    """Is in a network; its subnet is only looked up when it is created."""

    name = "OS::Neutron::Port"
    endpoint_type = "network"
    properties = {  # noqa: RUF012
        "network": Property("string", constraints=(Custom("neutron.network"),), update_allowed=True),
        "other": Property("string", update_allowed=True),
    }
    translation = (Resolve(("network",), "neutron.network"), Resolve(("other",), "neutron.network"))

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Value]]] = []

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        self.calls.append(("create", dict(props)))
        return Created(ctx.physical_name)

    def find(self, ctx: Context, token: str) -> str | None:
        return None

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        return Observation(exists=ctx.action != "DELETE")

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        self.calls.append(("update", dict(props)))
        return Created(physical_id)

    def delete(self, ctx: Context, physical_id: str) -> None: ...


class Neutron(http.server.ThreadingHTTPServer):
    """Knows networks by name."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.networks: dict[str, str] = {}
        self.tokens: list[str] = []  # of the look-ups
        self.status = 200
        self.url = f"http://127.0.0.1:{self.server_port}"


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers a request."""

    server: Neutron

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        if url.path.startswith("/v2.0/networks/"):
            return self.answer(200, {"network": {"id": url.path.rsplit("/", 1)[1], "name": "it"}})
        if url.path != "/v2.0/networks":
            link = {"rel": "self", "href": f"{self.server.url}/v2.0/"}
            return self.answer(200, {"versions": [{"id": "v2.0", "status": "CURRENT", "links": [link]}]})
        self.server.tokens.append(self.headers["X-Auth-Token"])
        (name,) = parse_qs(url.query)["name"]
        found = [{"id": id_, "name": one} for one, id_ in self.server.networks.items() if one == name]
        return self.answer(self.server.status, {"networks": found})

    def answer(self, status: int, body: Any) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def neutron() -> Iterator[Neutron]:
    server = Neutron()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def port() -> Port:
    return Port()


@pytest.fixture
def world(postgres_url: str, identity: StandIn, neutron: Neutron, port: Port) -> Iterator[World]:
    """An installation whose caller is ada, with neutron in her catalog."""
    identity.reset()
    made = World(postgres_url, types={Port.name: port}, **identity.settings())
    sign_in(made, identity, ("network", "RegionOne", neutron.url))
    yield made
    made.close()


def sign_in(world: World, identity: StandIn, *services: tuple[str, str, str]) -> None:
    """Continue as ada, with these services in the catalog of every token."""
    identity.services = list(services)
    identity.knows("token of ada", project="p1", user="ada")
    world.caller = caller_of(identity.tokens["token of ada"], "token of ada")
    world.context = replace(world.context, caller=world.caller)


def resources(**properties: Any) -> dict[str, Any]:
    return {"it": {"type": Port.name, "properties": properties}}


def recorded(world: World) -> Any:
    return world.resource("it").properties


def test_an_unknown_name_is_refused_with_its_location_and_looked_up_as_the_caller(
    world: World, neutron: Neutron, identity: StandIn
):
    identity.asked.clear()
    with pytest.raises(InvalidTemplate) as caught:
        world.create("s", resources(network="nowhere"))
    (fault,) = caught.value.diagnostics
    assert (fault.path, fault.message) == (
        "resources.it.properties.network",
        "Property error: resources.it.properties.network: Error validating value 'nowhere': "
        "Unable to find network with name or id 'nowhere'",
    )
    assert neutron.tokens == ["token of ada"]
    assert "token of ada" not in identity.asked  # it was validated when the request arrived


def test_a_name_becomes_an_id_and_both_are_equal(world: World, neutron: Neutron, port: Port):
    neutron.networks = {"private-1": ID}
    uuid = world.create("s", resources(network="private-1"))
    world.deliver_all()
    assert (world.state(uuid), recorded(world)) == ("CREATE_COMPLETE", {"network": ID})
    neutron.networks["private-2"] = ID.replace("5", "6")
    preview = preview_update(
        world.context,
        world.stack_row("s"),
        Body(
            orjson.dumps(
                {
                    "template": {
                        "heat_template_version": "2021-04-16",
                        "resources": resources(network="private-1", other="private-2"),
                    }
                }
            )
        ),
    )
    (change,) = preview.items["updated"]
    assert set(change.expected.changed) == {"other"}
    for properties, calls in (
        ({"network": ID}, ["create"]),
        ({"network": "private-2"}, ["create", "update"]),
        ({"network": neutron.networks["private-2"]}, ["create", "update"]),
    ):
        world.update("s", resources(**properties))
        world.deliver_all()
        assert world.state(uuid) == "UPDATE_COMPLETE"
        assert [verb for verb, _ in port.calls] == calls
    assert port.calls[-1] == ("update", {"network": neutron.networks["private-2"]})


def test_workers_look_up_as_the_user_of_the_stack(world: World, neutron: Neutron):
    neutron.networks = {"private-3": ID}
    uuid = world.create("s", resources(other="private-3"))
    assert neutron.tokens == []
    world.deliver_all()
    assert (world.state(uuid), recorded(world)) == ("CREATE_COMPLETE", {"other": ID})
    (token,) = neutron.tokens
    assert token != "token of ada"


def test_a_name_that_a_worker_does_not_find_fails_the_resource_and_an_update_repairs_it(
    world: World, neutron: Neutron
):
    uuid = world.create("s", resources(other="late"))
    world.deliver_all()
    assert world.state(uuid) == "CREATE_FAILED"
    assert (
        "resources.it.properties.other: Error validating value 'late': "
        "Unable to find network with name or id 'late'" in world.resource("it").status_reason
    )
    neutron.networks = {"late": ID}
    world.patch("s")
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"


def test_a_service_that_is_busy_delays_the_resource(world: World, neutron: Neutron, port: Port):
    neutron.networks, neutron.status = {"private-4": ID}, 503
    uuid = world.create("s", resources(network="private-4"))
    world.retry(4)
    assert (world.state(uuid), port.calls) == ("CREATE_IN_PROGRESS", [])
    failing = world.rows("SELECT service FROM circuit_breaker WHERE failures > 0")
    assert [row.service for row in failing] == ["neutron"]
    neutron.status = 200
    world.deliver_all()
    assert (world.state(uuid), recorded(world)) == ("CREATE_COMPLETE", {"network": ID})


def test_without_the_service_in_the_catalog_of_the_caller_the_type_is_unavailable(
    world: World, identity: StandIn, neutron: Neutron
):
    for services in ((), (("network", "Elsewhere", neutron.url),)):
        sign_in(world, identity, *services)
        with pytest.raises(InvalidTemplate) as caught:
            world.create("s", resources())
        (fault,) = caught.value.diagnostics
        assert fault.message == (
            "HEAT-E99001 Service neutron is not available for resource type OS::Neutron::Port, "
            "reason: neutron network endpoint is not in service catalog."
        )
