"""Unusual templates are accepted or refused, and accepted templates resolve."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.errors import InvalidTemplate
from orchestrator.template.definition import StackDefinition
from orchestrator.template.environment import Environment
from orchestrator.template.formats import all_formats, format_named
from orchestrator.template.function_view import ResourceProxy
from orchestrator.template.parameters import ParameterValues
from orchestrator.template.parse import Limits
from orchestrator.template.template import Template, load
from tests.profiles import examples

LIMITS = Limits(max_depth=50)
FORMATS = sorted(name for name, form in all_formats().items() if form.key == "heat_template_version")

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
words = texts | st.sampled_from(["", "~", "type", "x", "p", "r", "<<", "=", "*", "a.b", "[0]", "%x%", "$x"])
numbers = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
leaves = st.none() | st.booleans() | numbers | words
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=4)
)
patient = settings(deadline=None, suppress_health_check=list(HealthCheck))


def attempt(read: Callable[[], Any]) -> tuple[Any, InvalidTemplate | None]:
    """Return the result of `read`, or the fault of its refusal; any other exception fails the test."""
    try:
        return read(), None
    except InvalidTemplate as error:
        return None, error


@settings(patient, max_examples=examples(300))
@given(st.binary(max_size=200) | st.text(max_size=200))
def test_random_input_is_read_or_refused_and_nothing_else(text: bytes | str) -> None:
    for read in (lambda: load(text, LIMITS), lambda: Environment.parse(text, LIMITS)):
        _, refused = attempt(read)
        assert refused is None or str(refused)


SECTIONS = ["parameters", "resources", "outputs", "parameter_groups", "description", "conditions", "zz"]
KEYS = ["type", "properties", "metadata", "depends_on", "update_policy", "deletion_policy", "condition"]
MORE_KEYS = ["external_id", "value", "default", "constraints", "label", "hidden", "immutable", "tags"]
named = st.dictionaries(words, st.dictionaries(st.sampled_from([*KEYS, *MORE_KEYS]), values))


@settings(patient, max_examples=examples(100))
@given(st.dictionaries(st.sampled_from(SECTIONS), values | named), st.sampled_from(FORMATS))
def test_any_document_is_a_template_or_refused(sections: dict[str, Any], version: str) -> None:
    document = {"heat_template_version": version, **sections}
    read, refused = attempt(lambda: load(document, LIMITS))
    if refused:
        assert all(fault.message and fault.code for fault in refused.diagnostics)
    else:
        outline = orjson.loads(orjson.dumps(read.outline()))
        assert outline["version"] == read.version
        assert Template.from_outline(outline).outputs.keys() == read.outputs.keys()


NAMES = sorted({name for version in FORMATS for name in format_named(version).functions})
expressions = st.recursive(
    leaves | st.sampled_from(["p", "r", "x"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.builds(lambda name, args: {name: args}, st.sampled_from(NAMES), inner)
        | st.builds(
            lambda t, p: {"str_replace": {"template": t, "params": p}},
            inner,
            st.dictionaries(words, inner, max_size=2),
        )
        | st.builds(
            lambda t, e: {"repeat": {"template": t, "for_each": e}},
            inner,
            st.dictionaries(st.sampled_from(["%x%", "$x"]), inner, min_size=1, max_size=2),
        )
        | st.builds(lambda c, a, b: {"if": [c, a, b]}, inner, inner, inner)
        | st.builds(lambda m, k, v: {"map_replace": [m, {"keys": k, "values": v}]}, inner, inner, inner)
    ),
    max_leaves=12,
)


@settings(patient, max_examples=examples(500))
@given(expressions, st.sampled_from(FORMATS), st.booleans())
def test_an_expression_that_load_accepts_resolves_or_says_where_it_cannot(
    expression: Any, version: str, strict: bool
) -> None:
    document = {
        "heat_template_version": version,
        "parameters": {"p": {"type": "string", "default": "v"}},
        "resources": {"r": {"type": "T"}, "a": {"type": "T", "properties": {"e": expression}}},
    }
    try:
        body = load(document, LIMITS, ParameterValues({"p": "v"})).resources["a"].body
    except InvalidTemplate:
        return
    proxies = {
        "r": ResourceProxy("r", None, {"x": [1]}, "CREATE", "COMPLETE"),
        "a": ResourceProxy("a", None, {}, "INIT", "COMPLETE"),
    }
    observed = StackDefinition(version, ParameterValues({"p": "v"}), proxies, strict=strict)
    _, refused = attempt(lambda: observed.resolve(body["properties"], "here"))
    assert refused is None or refused.diagnostics[0].path.startswith("here")
