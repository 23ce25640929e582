"""Reporting the fault of a nested template as a fault of its parent template."""

from __future__ import annotations

import time

import pytest

from orchestrator.engine.validation.nested_faults import as_parent_fault, nested_path, not_yet_reported
from orchestrator.errors import Diagnostic


@pytest.mark.parametrize(
    ("message", "kind", "told"),
    [
        ("resources.x.y: it is wrong", "", "resources.a<t>.resources.x.y: it is wrong"),
        ("Property error: resources.x: wrong", "", "Property error: resources.a<t>.resources.x: wrong"),
        ("it is wrong", "", "resources.a<t>: it is wrong"),
        (
            "Output validation error: outputs.o: wrong",
            "",
            "Output validation error: resources.a<t>.outputs.o: wrong",
        ),
        (
            "no such thing",
            "InvalidTemplateReference",
            "InvalidTemplateReference: resources.a<t>: no such thing",
        ),
        (
            "InvalidTemplateReference: resources.b<u>: no such thing",
            "",
            "InvalidTemplateReference: resources.a<t>.resources.b<u>: no such thing",
        ),
        ("Strange: it is wrong", "", "Strange: resources.a<t>: it is wrong"),
        ("Resources.x.Properties: wrong", "", "resources.a<t>.Resources.x.Properties: wrong"),
    ],
)
def test_the_way_stands_before_the_place_and_after_the_kind(message, kind, told):
    fault = Diagnostic("code", message, "resources.x", 3, 4, "t", heat_type=kind or "StackValidationFailed")
    result = nested_path(fault, "resources.a<t>")
    assert (result.message, result.heat_type) == (told, "StackValidationFailed")
    assert (result.path, result.file, result.line) == ("resources.a<t>.resources.x", "t", 3)


@pytest.mark.parametrize(
    ("message", "path", "told"),
    [
        (
            "Property error: resources.a.properties.b: no",
            "resources.a.properties.b",
            "Property error: : resources.a.properties.b: : no",
        ),
        ("resources.x.y: it is: wrong", "resources.x.y", "resources.x.y: : it is: wrong"),
        ("resources.a: b.properties: no", "resources.a: b.properties.c", "resources.a: b.properties: : no"),
        (
            "resources.g<nested_stack>.resources.0<t>.resources.x: no",  # whose path is in the group's text
            "resources.g.properties.resource_def.properties.x",
            "resources.g<nested_stack>.resources.0<t>.resources.x: : no",
        ),
        (
            "outputs.o.value.list_join: [1].get_attr: no",
            "outputs.o.value.list_join[1].get_attr",
            "outputs.o.value.list_join: : [1].get_attr: no",
        ),
        ("Property error: inputs[0]: no", "inputs[0]", "Property error: : inputs[0]: : no"),
        ("It is wrong: all of it", "resources.x", "It is wrong: all of it"),
        ("Circular Dependency Found: a, b", "", "Circular Dependency Found: a, b"),
    ],
)
def test_label_and_place_have_two_colons_for_heats_clients(message, path, told):
    assert as_parent_fault(Diagnostic("code", message, path)) == told


@pytest.mark.parametrize("inside", ["resources.b.properties.c[0].d", "Resources.b.Properties.c"])
def test_a_wrong_value_inside_a_nested_template_is_reported_at_its_resource(inside):
    place = f"resources.properties.x<t.yaml>.{inside}"
    fault = Diagnostic("wrong-value", f"Property error: {place}: Value 'BAD' is not an integer", place)
    reported = f"resources.properties.x<t.yaml>.{inside[:11]}: : Value 'BAD' is not an integer"
    assert as_parent_fault(fault) == reported
    fault = Diagnostic("unknown-property", f"Property error: {place}: no", place)
    assert as_parent_fault(fault) == f"Property error: : {place}: : no"


def test_typed_values_are_passed_unchanged():
    fault = Diagnostic("code", "resources.a: no", "resources.a", heat_type="InvalidTemplateReference")
    assert as_parent_fault(fault) == "resources.a: no"


def paths(recorded, extra):
    return [
        fault.path
        for fault in not_yet_reported(
            [Diagnostic("c", "m", path) for path in recorded], [Diagnostic("c", "m", p) for p in extra]
        )
    ]


def test_faults_at_in_and_around_a_place_that_is_wrong_already_are_left_out():
    additional = ["a", "a.b", "a.b.c", "a.b[0]", "a.bc", "a.c", "b"]
    assert paths(["a.b"], additional) == ["a.bc", "a.c", "b"]
    assert paths([], additional) == additional
    assert paths(["a.b[0]"], additional) == ["a.b.c", "a.bc", "a.c", "b"]


def test_many_faults_are_compared_quickly():
    many = [f"resources.r{i}.properties" for i in range(20_000)]
    started = time.process_time()
    assert paths(many, [*many, "resources.x"]) == ["resources.x"]
    assert paths(["a." * 500_000], ["a." * 500_000]) == []
    assert time.process_time() - started < 5
