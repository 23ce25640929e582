"""The types that are known by name only."""

from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path

import pytest

from orchestrator.errors import NotSupported, ResourceTypeUnavailable
from orchestrator.resources.endpoint_types import canonical
from orchestrator.resources.registry import load_registry
from orchestrator.resources.unavailable_types import ALIASES, SERVICE_BY_TYPE, required_service, unavailable

ROOT = Path(__file__).parents[3]
# How many types each namespace of the catalogue has in all (docs/internals/resource-types.md §F).
SIZES = {
    "OS::Neutron": 54,
    "OS::Heat": 30,
    "AWS::EC2": 13,
    "OS::Octavia": 12,
    "OS::Keystone": 10,
    "OS::Aodh": 9,
    "OS::Nova": 8,
    "OS::Cinder": 7,
    "OS::Sahara": 7,
    "OS::Barbican": 5,
    "OS::Senlin": 5,
    "OS::Designate": 4,
    "OS::Magnum": 4,
    "OS::Manila": 4,
    "OS::Zaqar": 4,
    "AWS::AutoScaling": 3,
    "AWS::CloudFormation": 3,
    "OS::Mistral": 3,
    "AWS::IAM": 2,
    "OS::Blazar": 2,
    "OS::Glance": 2,
    "OS::Monasca": 2,
    "OS::Trove": 2,
    "AWS::CloudWatch": 1,
    "AWS::ElasticLoadBalancing": 1,
    "AWS::RDS": 1,
    "AWS::S3": 1,
    "OS::Ironic": 1,
    "OS::Swift": 1,
    "OS::Vitrage": 1,
    "OS::Zun": 1,
}


def built() -> set[str]:
    """Return the names of the types that come with the orchestrator."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return set(project["project"]["entry-points"]["orchestrator.resource_types"])


@pytest.mark.parametrize(
    ("name", "service"),
    [
        ("OS::Nova::Server", "compute"),
        ("OS::Neutron::Port", "network"),
        ("OS::Neutron::TaaS::TapFlow", "network"),
        ("OS::Cinder::Volume", "volumev3"),
        ("AWS::EC2::Volume", "volumev3"),
        ("AWS::EC2::Instance", "compute"),
        ("AWS::CloudWatch::Alarm", "alarming"),
        ("AWS::ElasticLoadBalancing::LoadBalancer", "load-balancer"),
        ("OS::Heat::SwiftSignal", "object-store"),
    ],
)
def test_a_type_of_the_catalogue_is_known_with_the_service_it_needs(name, service):
    assert required_service(name) == service


@pytest.mark.parametrize(
    "name", ["", "OS::Nova", "os::nova::server", "OS::Nova::Server ", "My::Type", "a.yaml"]
)
def test_any_other_name_is_not_known(name):
    assert required_service(name) is None
    assert unavailable(name) is None


def test_together_with_the_built_types_it_is_the_whole_catalogue():
    names = (SERVICE_BY_TYPE.keys() - ALIASES.keys()) | built()
    assert Counter("::".join(name.split("::")[:2]) for name in names) == SIZES


def test_a_built_type_of_the_catalogue_requires_its_service():
    types = load_registry()
    for name in SERVICE_BY_TYPE.keys() & built():
        endpoint_type = types[name].endpoint_type
        assert endpoint_type, name
        assert required_service(name) == canonical(endpoint_type), name


def test_an_older_name_has_the_requirements_of_the_newer_name():
    assert required_service("OS::Metering::Alarm") == "alarming"
    assert required_service("OS::Ceilometer::CombinationAlarm") == "alarming"
    assert required_service("OS::Quantum::Router") == "network"
    assert required_service("OS::Quantum::Nothing") is None
    assert all(SERVICE_BY_TYPE[alias] == SERVICE_BY_TYPE[name] for alias, name in ALIASES.items())


def test_the_refusal_names_the_service_in_heats_words():
    error = unavailable("OS::Metering::Alarm")
    assert isinstance(error, NotSupported)
    assert (error.heat_type, error.code, error.service) == ("ResourceTypeUnavailable", "99001", "aodh")
    assert str(error) == (
        "HEAT-E99001 Service aodh is not available for resource type OS::Metering::Alarm, "
        "reason: aodh alarming endpoint is not in service catalog."
    )


def test_every_known_type_can_be_refused():
    assert {type(unavailable(name)) for name in SERVICE_BY_TYPE} == {ResourceTypeUnavailable}
