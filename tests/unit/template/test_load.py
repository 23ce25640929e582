"""A template is read and checked; all its faults come together, in order, with their places."""

import orjson
import pytest

from orchestrator.errors import InvalidTemplate
from orchestrator.template.parameters import ParameterValues
from orchestrator.template.parse import Limits, parse
from orchestrator.template.template import Template, load

LIMITS = Limits()
GROUPS = "Parameter Groups error: parameter_groups"
NEW = "2018-08-31"


def template(version=NEW, **sections):
    return {"heat_template_version": version, **sections}


def resource(**keys):
    return template(resources={"a": {"type": "T", **keys}, "b": {"type": "T"}})


def faults(source):
    with pytest.raises(InvalidTemplate) as caught:
        load(source, LIMITS)
    return [(fault.path, fault.message) for fault in caught.value.diagnostics]


def fault(source):
    [item] = faults(source)
    return item


FULL = """
heat_template_version: queens
description: A web site
parameters:
  flavor: {type: string, default: m1.small, label: Size}
  count: {type: number, default: 2}
parameter_groups:
- label: Machines
  parameters: [flavor, count]
resources:
  server:
    type: OS::Heat::TestResource
    properties:
      value: {list_join: ["-", [{get_param: flavor}, {get_attr: [net, output, 0]}, {get_attr: [net, show]}]]}
    metadata: {volume: {get_resource: disk}, id: {get_param: "OS::stack_id"}}
    depends_on: last
    update_policy: {batch: {get_param: count}}
    deletion_policy: retain
  net: {type: OS::Heat::Value}
  disk: {type: OS::Heat::None}
  last: {type: OS::Heat::None, depends_on: [net, disk]}
outputs:
  address: {value: {get_attr: [server, output]}, description: Where it is}
  all: {value: [{get_attr: [net]}, {get_param: flavor}]}
"""


def test_a_template_knows_all_dependencies():
    read = load(FULL, LIMITS)
    server = read.resources["server"]
    assert (read.version, read.description) == ("2018-03-02", "A web site")
    assert list(read.resources) == ["server", "net", "disk", "last"]
    assert server.requires == {"net", "disk", "last"}
    assert server.dep_attrs == {"net": {"output", "show"}}
    assert server.parameters == {"flavor", "OS::stack_id", "count"}
    assert read.resources["last"].requires == {"net", "disk"}
    assert read.outputs["address"].dep_attrs == {"server": {"output"}}
    assert read.outputs["all"].dep_attrs == {"net": {"*"}}
    assert read.outputs["all"].description == "No description given"
    assert read.outputs["all"].parameters == {"flavor"}
    assert read.warnings == ()


def test_text_json_and_object_give_the_same_template():
    document = parse(FULL, LIMITS)
    assert load(FULL, LIMITS) == load(orjson.dumps(document), LIMITS) == load(document, LIMITS)


def test_an_outline_holds_all_but_the_resources_and_survives_json():
    read = load(FULL, LIMITS)
    again = Template.from_outline(orjson.loads(orjson.dumps(read.outline())))
    assert again.resources == {}
    assert (again.version, again.description, again.parameters, again.parameter_groups, again.outputs) == (
        read.version,
        read.description,
        read.parameters,
        read.parameter_groups,
        read.outputs,
    )
    assert again.outline() == read.outline()


def test_a_digest_changes_with_the_snippet_and_with_the_parameters_used_and_with_nothing_else():
    def digest(flavor="m1", unused="x", **keys):
        body = {"type": "T", "properties": {"p": {"get_param": "flavor"}}, **keys}
        declared = {"flavor": {"type": "string"}, "unused": {"type": "string"}}
        read = load(template(parameters=declared, resources={"a": body}), LIMITS)
        return read.resources["a"].digest(ParameterValues({"flavor": flavor, "unused": unused}))

    assert digest() == digest(unused="y")
    assert len({digest(), digest(flavor="m2"), digest(metadata={"x": 1}), digest(type="U")}) == 4
    assert len(digest()) == 32


def test_a_parameter_chosen_by_another_makes_all_of_them_count():
    body = {"type": "T", "properties": {"p": {"get_param": {"get_param": "which"}}}}
    read = load(template(parameters={"which": {"type": "string"}}, resources={"a": body}), LIMITS)
    item = ParameterValues({"which": "x", "x": 1})
    other = ParameterValues({"which": "x", "x": 2})
    assert read.resources["a"].digest(item) != read.resources["a"].digest(other)


@pytest.mark.parametrize(
    "section", ["parameters", "resources", "outputs", "parameter_groups", "description", "conditions"]
)
def test_a_section_that_is_null_is_empty(section):
    read = load(template(**{section: None}), LIMITS)
    assert (read.resources, read.outputs, read.parameters, read.description) == ({}, {}, {}, "No description")


@pytest.mark.parametrize(
    ("source", "path", "message"),
    [
        (template(foo=1), "foo", "The template section is invalid: foo"),
        (template("2013-05-23", conditions={}), "conditions", "The template section is invalid: conditions"),
        (
            template(resources=[1]),
            "resources",
            '"resources" must contain a map of resource maps. Found a [list] instead',
        ),
        (template(resources={"a": None}), "resources.a", "Each resource must contain a type key."),
        (
            template(resources={"a": 1}),
            "resources.a",
            '"resources" must contain a map of resource maps. Found a [int] instead',
        ),
        (template(resources={"a": {}}), "resources.a", "Each resource must contain a type key."),
        (template(resources={"a/b": {"type": "T"}}), "resources.a/b", 'Resource name may not contain "/"'),
        (
            template(resources={"é" * 256: {"type": "T"}}),
            f"resources.{'é' * 256}",
            "Resource name may not be longer than 255 characters",
        ),
        (template(parameters={"OS::stack_id": {"type": "string"}}), "parameters.OS::stack_id", None),
        (
            resource(propertys={}),
            "resources.a.propertys",
            '"propertys" is not a valid keyword inside a resource definition',
        ),
        (resource(properties=None), "resources.a.properties", "Resource a properties type must be object"),
        (resource(description=5), "resources.a.description", "Resource a description type must be string"),
        (resource(type={"get_param": "x"}), "resources.a.type", "Resource a type type must be string"),
        (resource(properties=[]), "resources.a.properties", "Resource a properties type must be object"),
        (resource(metadata="x"), "resources.a.metadata", "Resource a metadata type must be object"),
        (
            resource(depends_on=5),
            "resources.a.depends_on",
            "Resource a depends_on type must be list or string",
        ),
        (resource(deletion_policy="Keep"), "resources.a.deletion_policy", 'Invalid deletion policy "Keep"'),
        (resource(condition="c"), "resources.a.condition", None),
        (
            resource(external_id="c", depends_on="b"),
            "resources.a.depends_on",
            "Invalid dependency with external T resource: c",
        ),
        (resource(external_id=5), "resources.a.external_id", "Resource a external_id type must be string"),
        (
            resource(depends_on="c"),
            "resources.a.depends_on",
            'The specified reference "c" (in a) is incorrect.',
        ),
        (
            resource(depends_on=["b", "c"]),
            "resources.a.depends_on[1]",
            'The specified reference "c" (in a) is incorrect.',
        ),
        (
            resource(properties={"p": {"get_resource": "c"}}),
            "resources.a.properties.p.get_resource",
            'The specified reference "c" (in a.Properties.p) is incorrect.',
        ),
        (
            resource(metadata={"m": ["x", {"get_attr": ["c", "x"]}]}),
            "resources.a.metadata.m[1].get_attr",
            'The specified reference "c" (in a.Metadata.m[1]) is incorrect.',
        ),
        (
            resource(update_policy={"u": {"get_param": "nope"}}),
            "resources.a.update_policy.u.get_param",
            "The Parameter (nope) was not provided.",
        ),
        (
            resource(properties={"p": {"str_replace": {"template": "x"}}}),
            "resources.a.properties.p.str_replace",
            None,
        ),
        (
            resource(properties={"p": {"get_attr": ["b"]}}) | {"heat_template_version": "2015-04-30"},
            "resources.a.properties.p.get_attr",
            'resources.a.properties.p.get_attr: Arguments to "get_attr" must be of the form '
            "[resource_name, attribute, (path), ...]",
        ),
        (
            resource(properties={"p": {"repeat": {}}}),
            "resources.a.properties.p.repeat",
            None,
        ),
        (
            resource(properties={"p": {"Ref": "b"}}),
            "resources.a.properties.p.Ref",
            "resources.a.properties.p.Ref: The template version is invalid: "
            "The function Ref is not supported in this version of HOT.",
        ),
        (
            template(outputs={"o": {}}),
            "outputs.o",
            "Output validation error: outputs.o: Each output definition must contain a value key.",
        ),
        (template(outputs={"o": {"value": 1, "condition": "c"}}), "outputs.o.condition", None),
        (
            template(outputs={"o": 5}),
            "outputs.o",
            "Output validation error: outputs.o: Output definitions must be a map. Found a int instead",
        ),
        (
            template(outputs={"o": {"value": {"get_attr": ["zz", "x"]}}}),
            "outputs.o.value.get_attr",
            'outputs.o.value.get_attr: The specified reference "zz" (in unknown) is incorrect.',
        ),
        (
            template(parameters={"a": {"type": "string"}}, resources={"a": {"type": "T"}}),
            "resources.a",
            "Duplicate names {'a'}",
        ),
    ],
)
def test_a_broken_rule_is_reported_with_its_path(source, path, message):
    result, said = fault(source)
    assert result == path
    assert message is None or said == message


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ({"a": 1}, f"{GROUPS}: The parameter_groups should be a list."),
        (
            [{"label": "G"}],
            f"{GROUPS}.G: The parameters must be provided for each parameter group.",
        ),
        (
            [{"label": "G", "parameters": "p"}],
            f"{GROUPS}.G: The parameters should be a list.",
        ),
        (
            [{"parameters": ["q"]}],
            f"{GROUPS}.: The grouped parameter q does not reference a valid parameter.",
        ),
        (
            [{"parameters": ["p"]}, {"label": "G", "parameters": ["p"]}],
            f"{GROUPS}.G: The p parameter must be assigned to one parameter group only.",
        ),
    ],
)
def test_a_broken_parameter_group_is_reported(groups, message):
    assert fault(template(parameters={"p": {"type": "string"}}, parameter_groups=groups))[1] == message


@pytest.mark.parametrize("policy", ["Delete", "Retain", "Snapshot"])
def test_deletion_policies_in_lower_case_came_later(policy):
    assert load(resource(deletion_policy=policy.lower()), LIMITS)
    old = resource(deletion_policy=policy.lower()) | {"heat_template_version": "2013-05-23"}
    assert fault(old)[1] == f'Invalid deletion policy "{policy.lower()}"'


def test_the_heat_type_is_that_of_the_first_fault():
    for source, heat_type in [
        (template(foo=1), "InvalidTemplateSection"),
        (resource(properties={"p": {"get_resource": "c"}}), "InvalidTemplateReference"),
        (resource(properties={"p": {"get_param": "c"}}), "StackValidationFailed"),
        (resource(metadata={"p": {"get_param": "c"}}), "UserParameterMissing"),
        (resource(propertys=1), "StackValidationFailed"),
    ]:
        with pytest.raises(InvalidTemplate) as caught:
            load(source, LIMITS)
        assert caught.value.heat_type == heat_type


def test_faults_come_in_document_order_with_and_without_a_text():
    text = """heat_template_version: 2018-08-31
outputs:
  o: {value: {get_attr: [x, y]}}
resources:
  z: {type: T, properties: {p: {get_param: y}, q: {get_resource: nope}}}
  a: {typ: T}
parameters:
  p: {type: nothing}
"""
    with pytest.raises(InvalidTemplate) as caught:
        load(text, LIMITS)
    places = [(fault.line, fault.column) for fault in caught.value.diagnostics]
    assert places == sorted(places)
    assert len(places) == 6
    assert [fault.path for fault in caught.value.diagnostics] == [
        path for path, _ in faults(parse(text, LIMITS))
    ]


def test_a_near_name_is_suggested():
    with pytest.raises(InvalidTemplate) as caught:
        load(
            template(
                parameters={"flavor": {"type": "string"}},
                resources={"o": {"type": "T", "metadata": {"p": {"get_param": "flavr"}}}},
            ),
            LIMITS,
        )
    assert caught.value.diagnostics[0].hint == 'did you mean "flavor"?'


@pytest.mark.parametrize(
    ("version", "name", "hint"),
    [
        (NEW, "get_parm", 'did you mean "get_param"?'),
        (NEW, "list_joins", 'did you mean "list_join"?'),
        ("2013-05-23", "repeat", "the function repeat was added in version 2015-04-30"),
    ],
)
def test_a_mistyped_function_is_plain_data_and_a_warning(version, name, hint):
    source = resource(properties={"p": {name: "x"}}) | {"heat_template_version": version}
    [warning] = load(source, LIMITS).warnings
    assert (warning.severity, warning.path, warning.hint) == (
        "warning",
        f"resources.a.properties.p.{name}",
        hint,
    )


@pytest.mark.parametrize("name", ["value", "type", "equals", "not", "get_things_done_quickly", "params"])
def test_an_ordinary_single_key_is_no_warning(name):
    assert load(resource(properties={"p": {name: "x"}}), LIMITS).warnings == ()


def test_keys_given_twice_are_warned_about():
    [warning] = load("heat_template_version: 2018-08-31\ndescription: a\ndescription: b\n", LIMITS).warnings
    assert (warning.code, warning.line, warning.excerpt) == ("duplicate-key", 3, "description: b")


def test_an_object_nested_too_deep_is_refused():
    value = "x"
    for _ in range(500):
        value = [value]
    assert "nested deeper" in fault(resource(properties={"p": value}))[1]


def test_many_faults_are_reported_in_little_time():
    resources = {f"r{i}": {"type": "T", "properties": {"p": {"get_param": f"nope{i}"}}} for i in range(3000)}
    parameters = {f"p{i}": {"type": "string"} for i in range(300)}
    assert len(faults(orjson.dumps(template(parameters=parameters, resources=resources)))) == 3000


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            template(outputs={"o": {"value": 1, "x": 2}}),
            '"x" is not a valid keyword inside a output definition',
        ),
        (
            template(outputs={"o": {"value": {"get_resource": "zz"}}}),
            'outputs.o.value.get_resource: The specified reference "zz" (in unknown) is incorrect.',
        ),
    ],
)
def test_allowed_unavailable_types_cause_warnings(source, message):
    assert [warning.message for warning in load(source, LIMITS).warnings] == [message]
