"""The accepted templates, and the first error of the refused templates, as in Heat: when only asked for what
a template holds (`POST /validate`), and when a stack is to be made.
"""

from typing import Any, cast

import pytest
import yaml

from orchestrator.config import Settings
from orchestrator.errors import InvalidTemplate
from orchestrator.operations.context import OperationContext
from orchestrator.operations.request_body import StackRequest
from orchestrator.operations.validation.request import validate_request
from orchestrator.resources.registry import load_registry
from orchestrator.security.caller import Caller

CONTEXT = OperationContext(
    database=cast(Any, None),  # nothing is stored
    cipher=cast(Any, None),
    caller=Caller("p"),
    settings=Settings(),
    types=load_registry(),
)
N = "n.yaml"


def answer(template, *, strict, **request):
    """Return the first error, an empty text if the template is accepted."""
    if isinstance(template, str) and "ersion:" not in template:
        template = f'heat_template_version: "2018-08-31"\n{template}'
    document = yaml.safe_load(template) if isinstance(template, str) else template
    sent = StackRequest(document, "s", **request)
    try:
        validate_request(CONTEXT, sent, stack_uuid="None", strict=strict)
    except InvalidTemplate as error:
        return str(error)
    return ""


CFN = 'AWSTemplateFormatVersion: "2010-09-09"\n'
MISSING = "The Parameter (p) was not provided."
RANDOM = "resources: {a: {type: OS::Heat::RandomString}}\n"
NONE = "resources: {a: {type: OS::Heat::None, %s}}"


@pytest.mark.parametrize(
    ("template", "asked", "made"),
    [
        # A parameter's value may still change; a default that breaks a constraint is an error.
        (
            "parameters: {p: {type: number, default: x}}",
            "",
            "Parameter 'p' is invalid: Value 'x' is not a number",
        ),
        (
            'parameters: {p: {type: boolean, default: "maybe"}}',
            "",
            "Parameter 'p' is invalid: Unrecognized value 'maybe', acceptable values are: '0', '1', 'f', "
            "'false', 'n', 'no', 'off', 'on', 't', 'true', 'y', 'yes'",
        ),
        (CFN + 'Parameters: {P: {Type: Number, Default: ""}}', "", ...),
        ("parameters: {p: {type: number, default: x, constraints: [{range: {min: 1}}]}}", ..., ...),
        # These are evaluated for every request.
        ("parameters: {p: {type: string}}\n" + NONE % "external_id: {get_param: p}", MISSING, MISSING),
        ("parameters: {p: {type: string}}\n" + NONE % "deletion_policy: {get_param: p}", MISSING, MISSING),
        (NONE % "external_id: {get_param: p}", MISSING, MISSING),
        (NONE % "deletion_policy: {get_param: p}", MISSING, MISSING),
        (NONE % "condition: {equals: [{get_param: p}, 1]}", MISSING, MISSING),
        (NONE % "properties: {x: {get_param: p}}", "", ...),
        # The remaining sections of an external resource are not used.
        (NONE % "external_id: x, properties: {x: {get_attr: [nil, y]}, z: {Ref: nil}}", "", ""),
        (NONE % "external_id: {}", *["Resource a external_id type must be string"] * 2),
        (
            NONE % "description: {get_param: OS::stack_name}",
            *["Resource a description type must be string"] * 2,
        ),
        (NONE % "deletion_policy: {x: y}", *["Resource a deletion_policy type must be string"] * 2),
        (NONE % "depends_on: [{x: y}]", *["Resource a depends_on must be a list of strings"] * 2),
        (NONE % "condition: 5", *["Resource a condition type must be string_or_boolean"] * 2),
        ("outputs: {o: {value: 1, condition: null}}", "", ""),
        ("outputs: {o: {value: 1, condition: []}}", *['outputs.o.condition: Invalid condition "[]"'] * 2),
        # The other dialect.
        (CFN + "Resources: {a: {Type: OS::Heat::None, DeletionPolicy: retain}}", ..., ...),
        (CFN + "Mappings: x", "", ""),
        (
            CFN + "Mappings: {M: {a: {b: c}, d: e}}\n"
            "Resources: {a: {Type: OS::Heat::None, Properties: {x: {Fn::FindInMap: [M, a, b]}}}}",
            "",
            "",
        ),
        (CFN + "Resources: {a: {Type: OS::Heat::None, Properties: {x: {Ref: {Ref: a}}}}}", ..., ...),
        # Overlooked.
        ("parameter_groups: [{parameters: [], foo: 1}]", "", ""),
        # A fault of values hides none of the structure.
        (
            "resources: {a: {type: OS::Heat::RandomString, properties: {nope: {get_param: p}}}}",
            "Property error: resources.a.properties: Unknown Property nope",
            ...,
        ),
    ],
)
def test_a_template_is_accepted_when_heat_accepts_it(template, asked, made):
    for expected, strict in ((asked, False), (made, True)):
        said = answer(template, strict=strict)
        assert said if expected is ... else said == expected


@pytest.mark.parametrize(
    ("template", "first"),
    [
        # Keys come before a type that is missing.
        ("resources: {a: {typ: x}}", '"typ" is not a valid keyword inside a resource definition'),
        # Parameters' declarations come before sections, both before resources.
        ("foo: 1\nparameters: {p: {type: number, bar: 1}}", "Invalid key 'bar' for parameter (p)"),
        ("resources: {a: {typ: x}}\nfoo: 1", "The template section is invalid: foo"),
        # Types come before references, references before outputs, those before properties.
        (
            "resources: {a: {type: OS::Heat::None, properties: {x: {get_resource: nil}}}, "
            "b: {type: No::Such}}",
            "The Resource Type (No::Such) could not be found.",
        ),
        (NONE % "properties: {x: {get_resource: nil}}" + "\noutputs: {o: {}}", ...),
        (
            "resources: {a: {type: OS::Heat::RandomString, properties: {nil: 1}}}\noutputs: {o: {}}",
            "Output validation error: outputs.o: Each output definition must contain a value key.",
        ),
        ("outputs: {o: {}}\n" + NONE % "depends_on: a", "Circular Dependency Found: a -> a"),
        (
            "outputs: {o: {}}\nresources: {a: {type: No::Such}}",
            "The Resource Type (No::Such) could not be found.",
        ),
    ],
)
def test_the_first_fault_is_the_fault_reported_by_heat(template, first):
    said = answer(template, strict=False)
    assert said == (
        first if first is not ... else 'The specified reference "nil" (in a.Properties.x) is incorrect.'
    )


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ("{get_attr: [a, nil]}", "get_attr"),
        ("{list_join: [x, [{get_attr: [a, nil]}]]}", "list_join: [1][0].get_attr"),
        (
            "{list_join: [x, [{str_replace: {template: t, params: {p: {get_attr: [a, nil]}}}}]]}",
            "list_join: [1][0].str_replace: params.p.get_attr",
        ),
        ("{y: [{get_attr: [a, nil]}]}", "y[0].get_attr"),
    ],
)
def test_places_inside_function_arguments_start_at_the_function(value, place):
    said = answer(f"{RANDOM}outputs: {{o: {{value: {value}}}}}", strict=False)
    assert said == f"outputs.o.value.{place}: The Referenced Attribute (a nil) is incorrect."


def test_so_is_a_reference_to_nothing_and_a_function_that_is_gone():
    value = "{str_replace: {template: x, params: {x: {get_attr: [nil, y]}}}}"
    assert answer(f"outputs: {{o: {{value: {value}}}}}", strict=False) == (
        "outputs.o.value.str_replace: params.x.get_attr: "
        'The specified reference "nil" (in unknown) is incorrect.'
    )
    value = "{list_join: [x, [{Ref: a}]]}"
    assert answer(NONE % f"properties: {{x: {value}}}", strict=False) == (
        "resources.a.properties.x.list_join: [1][0].Ref: The template version is invalid: "
        "The function Ref is not supported in this version of HOT."
    )


def test_a_text_that_is_no_template_is_said_to_be_none():
    def of(text):
        with pytest.raises(InvalidTemplate) as caught:
            validate_request(CONTEXT, StackRequest(text, "s"), stack_uuid="None")
        return str(caught.value), caught.value.heat_type

    assert of("resources: {}") == (
        "Template not in valid format: Template format version not found.",
        "HTTPBadRequest",
    )
    assert of("- 1")[0] == (
        "Template not in valid format: The template is not a JSON object or YAML mapping."
    )
    assert of({"resources": {}}) == (
        "The template version is invalid: Template version was not provided",
        "InvalidTemplateVersion",
    )


def test_a_dialect_with_a_single_version_names_it():
    assert answer('AWSTemplateFormatVersion: "2012-12-12"', strict=False) == (
        'The template version is invalid: "AWSTemplateFormatVersion: 2012-12-12". '
        '"AWSTemplateFormatVersion" should be: 2010-09-09'
    )


def test_a_template_that_is_to_be_a_type_has_outputs_without_strange_keys():
    outer = f"resources: {{a: {{type: {N}}}}}"
    inner = 'heat_template_version: "2018-08-31"\noutputs: {o: {value: 1, foo: 2}}'
    said = f'resources.a<{N}>: "foo" is not a valid keyword inside a output definition'
    assert answer(outer, strict=False, files={N: inner}) == said
    assert answer(inner, strict=False) == ""


def test_an_environment_that_comes_with_a_request_names_its_sections():
    template = "parameters: {p: {type: string, default: x}}"
    for sent in ({"p": "v"}, "p: v"):
        assert answer(template, strict=True, environment=sent) == (
            'Environment not in valid format: environment has wrong section "p"'
        )
    for sent in ({}, None, {"parameters": {"p": "v"}}):
        assert answer(template, strict=True, environment=sent) == ""


def test_a_value_for_an_unknown_parameter_is_reported_before_types_in_both_dialects():
    for sections in ("resources: {a: {type: Nope}}", CFN + "Resources: {a: {Type: Nope}}"):
        reported = answer(sections, strict=True, parameters={"zz": 1})
        assert reported == "The Parameter (zz) was not defined in template."


@pytest.mark.parametrize(
    "place",
    [
        "resources: {a: {type: OS::Heat::Value, properties: {value: %s}}}",
        "resources: {a: {type: OS::Heat::RandomString, properties: %s}}",
        "resources: {a: {type: OS::Heat::None, metadata: {m: %s}}}",
        "resources: {a: {type: OS::Heat::None, deletion_policy: %s}}",
        "resources: {a: {type: OS::Heat::None, external_id: %s}}",
        "resources: {a: {type: OS::Heat::RandomString, properties: {character_classes: [%s]}}}",
        "resources: {a: {type: OS::Heat::None, condition: %s}}",
        "conditions: {c: %s}\nresources: {a: {type: OS::Heat::None, condition: c}}",
        "resources: {a: {type: n.yaml, properties: {p: x, j: %s}}}",
    ],
)
@pytest.mark.parametrize(
    "expression",
    [
        "{get_param: {get_param: text}}",
        "{get_param: [{get_param: text}, 1]}",
        "{get_param: map}",
        "{yaql: {expression: int($.data), data: {get_param: text}}}",
        "{map_merge: [{get_param: text}]}",
        "{if: [{get_param: text}, 1, 2]}",
        "{if: [{not: {get_param: text}}, 1, 2]}",
        "{if: [{yaql: {expression: int($.data), data: {get_param: text}}}, 1, 2]}",
    ],
)
@pytest.mark.parametrize("strict", [True, False])
def test_no_fault_quotes_hidden_values(place, expression, strict):
    declared = "parameters: {text: {type: string, hidden: true}, map: {type: json, hidden: true}}"
    nested = 'heat_template_version: "2018-08-31"\nparameters: {p: {type: string}, j: {type: json}}\n'
    nested += "outputs: {o: {value: {if: [{get_param: j}, 1, 2]}}}"
    sent = StackRequest(
        f'heat_template_version: "2018-08-31"\n{declared}\n{place % expression}',
        "s",
        parameters={"text": "S3CRET", "map": {"S3CRET": "S3CRET"}},
        files={"n.yaml": nested},
    )
    try:
        faults = validate_request(CONTEXT, sent, stack_uuid="None", strict=strict).warnings
    except InvalidTemplate as error:
        faults = error.diagnostics
    assert "S3CRET" not in str(faults)
