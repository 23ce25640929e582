"""The look-ups of a request: each value once, together, within a deadline."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from orchestrator.clients.keystone.cloud_session import Cloud
from orchestrator.config import Settings
from orchestrator.errors import InvalidTemplate, ProviderBusy, ProviderError
from orchestrator.lookups.cache import LookupCache
from orchestrator.lookups.kinds import LookupFault
from orchestrator.lookups.request import RequestLookups
from orchestrator.operations.context import OperationContext
from orchestrator.operations.request_body import StackRequest
from orchestrator.operations.validation.request import ValidatedRequest, validate_request
from orchestrator.resources.base import Property, ResourceType
from orchestrator.resources.registry import Registry
from orchestrator.schema.constraints import Custom
from orchestrator.schema.custom import cloud_checks
from orchestrator.security.caller import Caller

Find = Callable[[Any, str, str], str]


class Server(ResourceType):
    """Refers to objects of several services."""

    name = "Test::Server"
    properties = {  # noqa: RUF012
        "flavor": Property("string", constraints=(Custom("nova.flavor"),)),
        "image": Property("string", constraints=(Custom("glance.image"),)),
        "networks": Property(
            "list",
            schema=Property(
                "map", schema={"network": Property("string", constraints=(Custom("neutron.network"),))}
            ),
        ),
    }


def lookups_with(find: Find, **options: Any) -> RequestLookups:
    options = {"recent": LookupCache(), **options}
    return RequestLookups(Cloud(lambda: "session", "r"), "p", find=find, **options)


def known(calls: list[tuple[str, str]]) -> Find:
    def find(_cloud: Any, kind: str, value: str) -> str:
        calls.append((kind, value))
        if value.startswith("no "):
            raise LookupFault(f"There is {value}.")
        return f"id of {value}"

    return find


def template(count: int) -> dict[str, Any]:
    servers = {
        f"server{i}": {
            "type": "Test::Server",
            "properties": {
                "flavor": f"flavor{i % 3}",
                "image": f"image{i % 2}",
                "networks": [{"network": f"network{i % 5}"}, {"network": "network0"}],
            },
        }
        for i in range(count)
    }
    return {"heat_template_version": "2021-04-16", "resources": servers}


def validated(lookups: RequestLookups, source: dict[str, Any], **request: Any) -> ValidatedRequest:
    nothing: Any = None
    context = OperationContext(nothing, nothing, Caller("p"), Settings(), Registry.of(Server))
    with cloud_checks(lookups.check):
        return validate_request(context, StackRequest(source, "s", **request), stack_uuid="None")


def test_a_thousand_servers_need_ten_look_ups() -> None:
    calls: list[tuple[str, str]] = []
    lookups, began = lookups_with(known(calls)), time.process_time()
    validated(lookups, template(1_000))
    assert not lookups.answer()
    assert time.process_time() - began < 2.0
    assert sorted(calls) == [
        *(("glance.image", f"image{i}") for i in range(2)),
        *(("neutron.network", f"network{i}") for i in range(5)),
        *(("nova.flavor", f"flavor{i}") for i in range(3)),
    ]


def test_faults_are_those_of_the_values_with_their_locations() -> None:
    lookups, source = lookups_with(known([])), template(2)
    source["resources"]["server1"]["properties"]["networks"][1]["network"] = "no network"
    validated(lookups, source)
    assert lookups.answer()
    with pytest.raises(InvalidTemplate) as caught:
        validated(lookups, source)
    (fault,) = caught.value.diagnostics
    assert fault.path == "resources.server1.properties.networks[1].network"
    assert fault.message == (
        "Property error: resources.server1.properties.networks[1].network: "
        "Error validating value 'no network': There is no network."
    )
    assert not lookups.answer()


def test_the_constraints_of_parameters_are_looked_up_too() -> None:
    lookups = lookups_with(known([]))
    source = template(0)
    for name, kind in (("size", "string"), ("nets", "comma_delimited_list")):
        constraint = "nova.flavor" if name == "size" else "neutron.network"
        source.setdefault("parameters", {})[name] = {
            "type": kind,
            "constraints": [{"custom_constraint": constraint}],
        }
    given = {"size": "no flavor", "nets": ["a", "no net"]}
    validated(lookups, source, parameters=given)
    assert lookups.answer()
    with pytest.raises(InvalidTemplate) as caught:
        validated(lookups, source, parameters=given)
    assert [fault.message for fault in caught.value.diagnostics] == [
        "Parameter 'size' is invalid: Error validating value 'no flavor': There is no flavor.",
        "Parameter 'nets' is invalid: Error validating value '['a', 'no net']': There is no net.",
    ]


def test_look_ups_run_at_the_same_time() -> None:
    barrier = threading.Barrier(10)

    def find(_cloud: Any, _kind: str, value: str) -> str:
        barrier.wait(10)
        return value

    lookups = lookups_with(find)
    validated(lookups, template(30))
    assert not lookups.answer()
    assert not barrier.broken


def test_a_recent_result_is_used_again_and_a_fault_is_not() -> None:
    calls: list[tuple[str, str]] = []
    recent = LookupCache()
    for _ in range(2):
        lookups = lookups_with(known(calls), recent=recent)
        assert lookups.check("nova.flavor", "m1") is None
        assert lookups.check("nova.flavor", "no flavor") is None
        assert lookups.answer()
        assert lookups.check("nova.flavor", "no flavor") == "There is no flavor."
    assert sorted(calls) == [("nova.flavor", "m1"), *[("nova.flavor", "no flavor")] * 2]


@pytest.mark.parametrize("error", [ProviderBusy("later"), ProviderError("forbidden")])
def test_a_service_that_does_not_answer_is_no_fault(error: Exception) -> None:
    def find(_cloud: Any, _kind: str, _value: str) -> str:
        raise error

    lookups = lookups_with(find)
    lookups.check("nova.flavor", "m1")
    assert not lookups.answer()
    assert lookups.check("nova.flavor", "m1") is None


def test_the_deadline_ends_the_look_ups() -> None:
    go_on = threading.Event()

    def find(_cloud: Any, _kind: str, value: str) -> str:
        if value == "slow":
            assert go_on.wait(60)
            return value
        raise LookupFault("none")

    lookups = lookups_with(find, deadline_seconds=0.5)
    lookups.check("nova.flavor", "slow")
    lookups.check("nova.flavor", "m1")
    try:
        assert lookups.answer()
        assert lookups.check("nova.flavor", "m1") == "none"
        assert lookups.check("nova.flavor", "slow") is None
    finally:
        go_on.set()


def test_a_caller_whose_token_is_not_accepted_gets_no_fault() -> None:
    def refused() -> Any:
        raise ProviderError("no")

    lookups = RequestLookups(Cloud(refused, "r"), "p", find=known([]), recent=LookupCache())
    lookups.check("nova.flavor", "no flavor")
    assert not lookups.answer()


@pytest.mark.parametrize(
    ("kind", "value"),
    [("nova.flavor", ""), ("nova.flavor", None), ("trove.flavor", "x"), ("nova.flavor", True)],
)
def test_nothing_is_looked_up_for_an_empty_value_or_a_service_without_look_ups(kind: str, value: Any) -> None:
    calls: list[tuple[str, str]] = []
    lookups = lookups_with(known(calls))
    assert lookups.check(kind, value) is None
    assert not lookups.answer()
    assert calls == []
