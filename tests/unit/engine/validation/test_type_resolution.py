"""Resolution of the type of a resource to a type, a template, or nothing; implied requirements of types."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from orchestrator.engine.validation.implicit_requirements import with_implicit
from orchestrator.engine.validation.type_resolution import (
    TypeEnvironment,
    TypeResolver,
    UnavailableType,
    UnknownType,
)
from orchestrator.resources.base import Property, ResourceType
from orchestrator.resources.builtin.none import NoneResource
from orchestrator.resources.builtin.random_string import RandomString
from orchestrator.resources.endpoint_types import every_service, no_services
from orchestrator.resources.registry import Registry
from orchestrator.resources.template_type import TemplateType
from orchestrator.template.environment import Environment
from orchestrator.template.parse import Limits
from orchestrator.template.template import load
from tests.unit.engine.validation.validation_world import a, diagnostics

URL = "http://example/nested.yaml"
TEMPLATE = json.dumps({"heat_template_version": "2018-08-31"})


class Leaf(ResourceType):
    """Requires every resource named by the value of a property, and a resource named `base`."""

    name = "Test::Leaf"
    properties = {"near": Property("list")}  # noqa: RUF012

    def implicit_requires(self, definition, resources):
        return [*definition.body.get("properties", {}).get("near", ()), "base"]


class Net(ResourceType):
    """Needs a service that Heat knows."""

    name = "OS::Neutron::Net"
    endpoint_type = "network"
    properties = {"name": Property("string", required=True)}  # noqa: RUF012


class Share(ResourceType):
    """A third party's type that needs a service."""

    name = "My::Share"
    endpoint_type = "shared-file-system"


TYPES = Registry.of(Leaf, Net, NoneResource, RandomString, Share)


def kinds(registry=None, files=None, globals=None, **options):
    environment = Environment.parse({"resource_registry": registry or {}})
    made = TypeEnvironment.of_stack(TYPES, environment, files or {}, Limits(), globals=globals)
    return TypeResolver(replace(made, **options))


def definition(type_name, name="a"):
    source = {"heat_template_version": "2018-08-31", "resources": {name: {"type": type_name}}}
    return load(source, Limits()).resources[name]


def missing(kinds, type_name, name="a"):
    resource_type = kinds.of(definition(type_name, name))
    assert isinstance(resource_type, UnknownType)
    (fault,) = resource_type.at(f"resources.{name}.type")
    return fault


def test_a_type_that_nothing_maps_stands_for_itself():
    types_ = kinds()
    assert types_.of(definition("OS::Heat::None")) is TYPES["OS::Heat::None"]
    assert types_.resolved_name(definition("OS::Heat::None")) == "OS::Heat::None"


def test_an_alias_is_the_type_that_it_leads_to():
    types_ = kinds({"My::Name": "OS::Heat::*", "Our::*": "OS::Heat::None", "My::*": "Our::X"})
    for name in ("My::Thing", "Our::Thing"):
        assert types_.of(definition(name)) is TYPES["OS::Heat::None"]
        assert types_.resolved_name(definition(name)) == "OS::Heat::None"


def test_a_mapping_for_a_resource_applies_only_to_it():
    types_ = kinds({"resources": {"a": {"OS::Heat::None": "OS::Heat::RandomString"}}})
    assert types_.resolved_name(definition("OS::Heat::None", "a")) == "OS::Heat::RandomString"
    assert types_.resolved_name(definition("OS::Heat::None", "b")) == "OS::Heat::None"


def test_an_unknown_type_is_reported_with_suggestions():
    fault = missing(kinds(), "OS::Heat::RandomStrin")
    assert fault.message == "The Resource Type (OS::Heat::RandomStrin) could not be found."
    assert (fault.path, fault.hint) == ("resources.a.type", 'did you mean "OS::Heat::RandomString"?')
    assert "OS::Nova::Server" in missing(kinds(), "OS::Nova::Serwer").hint
    assert kinds().resolved_name(definition("No::Such")) == "No::Such"


def test_a_type_that_leads_nowhere_or_was_removed_by_the_operator_is_unknown():
    assert missing(kinds({"My::A": "No::Such"}), "My::A").code == "unknown-type"
    assert missing(kinds(globals={"OS::Heat::None": None}), "OS::Heat::None").code == "unknown-type"


def test_mappings_that_go_around_in_a_circle_are_a_fault_of_the_resource():
    fault = missing(kinds({"My::A": "My::B", "My::B": "My::A"}), "My::A")
    assert (fault.code, fault.path) == ("registry-circle", "resources.a.type")


def test_a_known_type_is_refused_under_the_name_in_the_template():
    fault = missing(kinds({"My::Server": "OS::Nova::Server"}), "My::Server")
    assert fault.heat_type == "ResourceTypeUnavailable"
    assert "Service nova is not available for resource type My::Server, reason: " in fault.message


def test_a_registered_type_whose_service_is_missing_is_refused_like_an_unregistered_type():
    for name, client in (("OS::Neutron::Net", "neutron"), ("My::Share", "manila")):
        fault = missing(kinds(), name)
        assert (fault.code, fault.heat_type) == ("type-unavailable", "ResourceTypeUnavailable")
        text = f"Service {client} is not available for resource type {name}, reason: {client} "
        assert text in fault.message
    assert isinstance(kinds(allow_unavailable=True).of(definition("OS::Neutron::Net")), UnavailableType)


def test_a_registered_type_is_itself_where_its_service_is_offered():
    types_ = kinds(offers="network".__eq__)
    assert types_.of(definition("OS::Neutron::Net")) is TYPES["OS::Neutron::Net"]
    assert missing(types_, "My::Share").code == "type-unavailable"


def test_a_template_is_compared_only_with_a_type_that_is_offered():
    for offers, mismatches in ((no_services, 0), (every_service, 1)):
        types_ = kinds({"OS::Neutron::Net": URL}, {URL: TEMPLATE}, offers=offers)
        assert len(types_.of(definition("OS::Neutron::Net")).mismatches) == mismatches


def test_a_known_unavailable_type_may_be_allowed_but_an_unknown_type_never():
    types_ = kinds(allow_unavailable=True)
    assert isinstance(types_.of(definition("OS::Nova::Server")), UnavailableType)
    assert types_.of(definition("OS::Nova::Server")).has_attribute("anything")
    assert isinstance(types_.of(definition("No::Such")), UnknownType)


def test_a_type_with_a_template_suffix_is_a_file_of_the_request():
    types_ = kinds(files={URL: TEMPLATE})
    kind = types_.of(definition(URL))
    assert isinstance(kind, TemplateType)
    assert (kind.name, types_.resolved_name(definition(URL))) == (URL, URL)
    assert types_.of(definition(URL, "b")) is kind


def test_a_mapped_template_keeps_the_name_it_is_used_under():
    types_ = kinds({"My::A": URL}, {URL: TEMPLATE})
    assert types_.of(definition("My::A")).name == "My::A"
    assert types_.resolved_name(definition("My::A")) == URL


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("n.yaml", "Invalid URL scheme "),
        ("file:///etc/n.yaml", "Invalid URL scheme file"),
        (URL, f"Failed to retrieve template from {URL}"),
    ],
)
def test_a_template_missing_from_the_request_is_reported_and_not_fetched(url, problem):
    fault = missing(kinds(), url)
    assert fault.message == f'Could not fetch remote template "{url}": {problem}'
    assert "send the text" in fault.hint
    assert missing(kinds(files={URL[:-1]: TEMPLATE}), URL).hint == f'did you mean "{URL[:-1]}"?'


def test_a_broken_template_is_reported_with_its_file_and_line():
    fault = missing(kinds(files={URL: "heat_template_version: 2018-08-31\nparameters: {p: {}}\n"}), URL)
    assert (fault.file, fault.line) == (URL, 2)
    assert fault.message == f"resources.a<{URL}>: Missing parameter type for parameter: p"
    fault = missing(kinds(files={URL: "a: ["}), URL)
    assert fault.message.startswith(f"resources.a<{URL}>: Error parsing template {URL} ")
    assert fault.file == URL
    where = f"resources.a<{URL}>: "
    assert missing(kinds(files={URL: "{}"}), URL).message == f"{where}Template format version not found."
    assert missing(kinds(files={URL: "- 1"}), URL).message == (
        f"{where}The template is not a JSON object or YAML mapping."
    )


def test_a_template_that_is_too_large_is_a_fault_of_the_resource():
    environment = Environment()
    small = Limits(max_bytes=10)
    result = TypeResolver(TypeEnvironment.of_stack(TYPES, environment, {URL: TEMPLATE}, small))
    assert missing(result, URL).heat_type == "RequestLimitExceeded"


def test_inside_a_template_its_own_type_name_is_the_real_type():
    types_ = kinds({"OS::Heat::None": URL}, {URL: TEMPLATE})
    kind = types_.of(definition("OS::Heat::None"))
    assert isinstance(kind, TemplateType)
    inside = types_.child(kind)
    assert inside.of(definition("OS::Heat::None")) is TYPES["OS::Heat::None"]
    assert (types_.depth, inside.depth) == (0, 1)


def test_mappings_reach_into_nested_stacks_by_the_names_on_the_way():
    registry = {"resources": {"a": {"x": {"OS::Heat::None": "OS::Heat::RandomString"}}}}
    types_ = kinds(registry, {URL: TEMPLATE})
    a, b = (types_.of(definition(URL, name)) for name in "ab")
    in_a, in_b = types_.child(a), types_.child(b)
    assert in_a.resolved_name(definition("OS::Heat::None", "x")) == "OS::Heat::RandomString"
    assert in_b.resolved_name(definition("OS::Heat::None", "x")) == "OS::Heat::None"


def test_resources_with_equal_environment_entries_share_a_type():
    registry = {"resources": {"web_*": {"x": {"OS::Heat::None": "OS::Heat::RandomString"}}}}
    types_ = kinds(registry, {URL: TEMPLATE})
    item, two, other = (types_.of(definition(URL, name)) for name in ("web_1", "web_2", "db"))
    assert item is two
    assert item is not other
    inside = definition("OS::Heat::None", "x")
    assert types_.child(item).resolved_name(inside) == "OS::Heat::RandomString"
    assert types_.child(other).resolved_name(inside) == "OS::Heat::None"


# Implicit requirements of a type.


def template(**resources):
    body = {
        name: {"type": kind, **({"depends_on": sorted(needs)} if needs else {}), **additional}
        for name, (kind, needs, additional) in resources.items()
    }
    return load({"heat_template_version": "2018-08-31", "resources": body}, Limits())


def requirements(template):
    return {name: set(item.requires) for name, item in with_implicit(template, kinds()).resources.items()}


def near(*names):
    return {"properties": {"near": list(names)}}


def test_implicit_dependencies_of_a_type_are_required():
    template_ = template(
        leaf=("Test::Leaf", [], near("x", "gone")), base=("OS::Heat::None", [], {}), x=("No::Such", [], {})
    )
    assert requirements(template_) == {"leaf": {"base", "x"}, "base": set(), "x": set()}


def test_nothing_is_touched_where_no_type_needs_anything():
    template_ = template(a=("OS::Heat::None", ["b"], {}), b=("No::Such", [], {}))
    assert with_implicit(template_, kinds()) is template_


def test_implied_dependencies_that_would_form_a_cycle_are_omitted():
    template_ = template(
        leaf=("Test::Leaf", [], near("x", "y", "leaf")),
        base=("OS::Heat::None", ["leaf"], {}),
        x=("OS::Heat::None", ["base"], {}),
        y=("OS::Heat::None", [], {}),
    )
    assert requirements(template_)["leaf"] == {"y"}


def test_two_resources_that_imply_each_other_wait_in_one_direction():
    template_ = template(a=("Test::Leaf", [], near("b")), b=("Test::Leaf", [], near("a")))
    assert requirements(template_) == {"a": {"b"}, "b": set()}


def test_a_circle_that_was_written_stays_as_it_is():
    template_ = template(a=("OS::Heat::None", ["b"], {}), b=("Test::Leaf", ["a"], near("c")), c=("X", [], {}))
    assert requirements(template_) == {"a": {"b"}, "b": {"a"}, "c": set()}


def test_a_type_like_the_name_of_a_file_says_which_names_are_templates():
    (fault,) = diagnostics({"a": a("my-server.yml")})
    assert (fault.code, "ends in .yaml or .template" in fault.hint) == ("unknown-type", True)


def test_a_type_of_openstack_without_a_cloud_says_how_to_get_one():
    (fault,) = diagnostics({"a": a("OS::Neutron::Net")})
    assert (fault.code, "up --cloud simulated" in fault.hint) == ("type-unavailable", True)
