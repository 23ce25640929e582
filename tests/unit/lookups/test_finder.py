"""Names in properties are replaced by ids with `Resolve` rules."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.clients.keystone.cloud_session import Cloud
from orchestrator.errors import ProviderBusy
from orchestrator.lookups.cache import LookupCache
from orchestrator.lookups.finder import CloudFinder
from orchestrator.lookups.kinds import LookupFault
from orchestrator.resources.base import Property, ResourceType
from orchestrator.schema.translation import Resolve

ID = "5a2c3f66-6d5c-4c0f-9f3c-0a7a3f0c1e11"


class Server(ResourceType):
    """Names a flavor, a port and networks."""

    name = "Test::Server"
    properties = {  # noqa: RUF012
        "flavor": Property("string"),
        "port": Property("string"),
        "networks": Property("list", schema=Property("map", schema={"network": Property("string")})),
    }
    translation = (
        Resolve(("flavor",), "nova.flavor"),
        Resolve(("port",), "neutron.port"),
        Resolve(("networks", "network"), "neutron", "network"),
    )


class Finder(CloudFinder):
    """Knows every name except "none"."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        cloud = Cloud(lambda: None, "r")
        super().__init__(cloud, "p", recent=LookupCache(), find=self.find)

    def find(self, cloud: object, kind: str, value: str) -> str:
        self.calls.append((kind, value))
        if value == "none":
            raise LookupFault("The Flavor (none) could not be found.")
        if value == "busy":
            raise ProviderBusy("later")
        return f"id of {value}"


def read(finder: Finder, **properties: Any) -> tuple[dict[str, Any], list[Any]]:
    return Server().read_properties(properties, path="it", resolve=finder)


def test_names_become_ids_each_looked_up_once() -> None:
    finder = Finder()
    networks = [{"network": "private"}, {"network": "public"}, {"network": "private"}]
    properties, faults = read(finder, flavor="m1", networks=networks)
    assert faults == []
    assert properties == {
        "flavor": "id of m1",
        "networks": [{"network": f"id of {name}"} for name in ("private", "public", "private")],
    }
    assert finder.calls == [
        ("nova.flavor", "m1"),
        ("neutron.network", "private"),
        ("neutron.network", "public"),
    ]


def test_a_value_in_the_form_of_an_id_is_an_id_except_where_ids_have_any_form() -> None:
    finder = Finder()
    properties, _ = read(finder, flavor=ID, port=ID)
    assert properties == {"flavor": f"id of {ID}", "port": ID}
    assert finder.calls == [("nova.flavor", ID)]


def test_an_unknown_name_is_a_fault_of_its_property() -> None:
    _, (fault,) = read(Finder(), flavor="none")
    assert (fault.path, fault.message) == (
        "it.flavor",
        "Error validating value 'none': The Flavor (none) could not be found.",
    )


def test_a_service_without_an_answer_is_no_fault() -> None:
    with pytest.raises(ProviderBusy):
        read(Finder(), flavor="busy")
