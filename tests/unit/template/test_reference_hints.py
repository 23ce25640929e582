"""The hints of references to names that do not exist."""

import pytest

from orchestrator.errors import InvalidTemplate
from orchestrator.template.parameters import ParameterValues
from orchestrator.template.template import load
from tests.unit.template.test_load import LIMITS, template


def hints(source, **values):
    with pytest.raises(InvalidTemplate) as caught:
        load(source, LIMITS, ParameterValues(values))
    return [fault.hint for fault in caught.value.diagnostics]


@pytest.mark.parametrize(
    "value", [{"get_attr": ["web", "output"]}, {"list_join": ["", [{"get_resource": "web"}]]}]
)
def test_a_reference_to_a_resource_whose_condition_is_false_says_so(value):
    user = {"type": "T", "properties": {"x": value}}
    source = template(
        parameters={"on": {"type": "boolean"}},
        conditions={"c": {"get_param": "on"}},
        resources={"web": {"type": "T", "condition": "c"}, "user": user},
    )
    assert hints(source, on=False) == ['the resource "web" does not exist: its condition "c" is false']


def test_a_ref_to_a_resource_whose_condition_is_false_says_so():
    source = {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Conditions": {"C": {"Fn::Equals": ["a", "b"]}},
        "Resources": {
            "web": {"Type": "T", "Condition": "C"},
            "user": {"Type": "T", "Properties": {"x": {"Ref": "web"}}},
        },
    }
    assert hints(source) == ['the resource "web" does not exist: its condition "C" is false']


def test_a_ref_may_mean_a_parameter_or_a_resource():
    source = {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Parameters": {"Size": {"Type": "String"}},
        "Resources": {
            "Server": {"Type": "T"},
            "user": {"Type": "T", "Properties": {"x": {"Ref": "Servr"}, "y": {"Ref": "Siz"}}},
        },
    }
    assert hints(source) == ['did you mean "Server"?', 'did you mean "Size"?']
