"""The parser agrees with PyYAML on every accepted document, and refuses the rest in a single way."""

import json

import orjson
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.errors import InvalidTemplate
from orchestrator.template.parse import Limits, locate, parse
from orchestrator.template.yaml_scalars import plain_scalar
from tests.profiles import examples
from tests.property.yaml_reference import Reference, given_twice, places, read
from tests.property.yaml_texts import yaml_texts

LIMITS = Limits(max_depth=50)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
words = st.one_of(
    texts, st.sampled_from(["", "~", "yes", "2013-05-23", "0x1F", "1:30", "<<", "=", "*a", "- b", "#c"])
)
numbers = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
leaves = st.none() | st.booleans() | numbers | words
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=4)
)
documents = st.dictionaries(words, values, max_size=5)


def attempt(read):
    """Return the result of `read`, or the fault of its refusal; any other exception fails the test."""
    try:
        return read(), None
    except InvalidTemplate as error:
        return None, error


@given(documents, st.booleans(), st.booleans())
def test_generated_yaml_is_read_as_pyyaml_reads_it(document, flow, unicode):
    text = yaml.safe_dump(document, default_flow_style=flow, allow_unicode=unicode, sort_keys=False)
    assert parse(text, LIMITS) == read(text)
    if not unicode:  # PyYAML writes some line breaks as they are and then reads them as spaces
        assert parse(text, LIMITS) == document


@given(documents)
def test_generated_json_is_read_exactly(document):
    assert parse(orjson.dumps(document), LIMITS) == document
    assert parse(json.dumps(document, indent="\t"), LIMITS) == document


@given(st.from_regex(r"\A[-+.0-9_:xobeEtTzZ ~yYnoasefrul<=]{0,12}\Z"))
def test_an_unquoted_scalar_is_read_as_by_pyyaml(text):
    try:
        expected = Reference("").construct_object(
            yaml.ScalarNode(Reference("").resolve(yaml.ScalarNode, text, (True, False)), text)
        )
    except (yaml.YAMLError, ValueError, OverflowError):
        return  # no value to agree on, or none for JSON
    assert plain_scalar(text) == expected


@given(documents)
def test_every_place_of_a_document_is_found_again(document):
    text = yaml.safe_dump(document, sort_keys=False)
    paths = [(key,) for key in document]
    result = locate(text, paths)
    assert set(result) == set(paths)
    lines = text.splitlines()
    assert [line for line, _ in result.values()] == sorted(line for line, _ in result.values())
    assert all(1 <= line <= len(lines) and column >= 1 for line, column in result.values())


@settings(max_examples=examples(300))
@given(st.binary(max_size=200) | st.text(max_size=200))
def test_random_input_is_read_or_refused_and_nothing_else(text):
    _, refused = attempt(lambda: parse(text, LIMITS))
    assert refused is None or str(refused)
    assert locate(text, [("a", 0)]) is not None


@settings(max_examples=examples(400), suppress_health_check=[HealthCheck.too_slow])
@given(yaml_texts())
def test_yaml_in_every_style_is_read_as_pyyaml_reads_it(text):
    try:
        expected = read(text)
    except yaml.YAMLError:  # it trips over some that we read: a bare "=" or "<<"
        attempt(lambda: parse(text, LIMITS))
        return
    except (ValueError, LookupError):  # its safe loader's own way of refusing "0x_" or "!!bool 2"
        expected = "bad-scalar"
    result, refused = attempt(lambda: parse(text, LIMITS))
    if not refused:
        assert result == (expected or {})
    elif expected == "bad-scalar":
        assert refused.diagnostics[0].code == "bad-scalar"
    else:
        assert refused.diagnostics[0].code == "not-a-mapping"
        assert not isinstance(expected, dict)


@given(yaml_texts())
def test_everything_is_found_where_pyyaml_has_it(text):
    try:
        read(text)
        expected = places(text)
        # An alias below a duplicate key has its location; the reference knows only that of the earlier key.
        if "*" in text and given_twice(text):
            return
    except (yaml.YAMLError, ValueError, LookupError):
        return
    assert locate(text, expected) == expected


@given(yaml_texts())
def test_every_repeated_key_is_reported_with_its_place(text):
    warnings = []
    try:
        twice = given_twice(text)
        parse(text, LIMITS, warnings=warnings)
    except (yaml.YAMLError, ValueError, LookupError, InvalidTemplate):
        return
    assert sorted((warning.line, warning.column) for warning in warnings) == twice


PIECES = r"""a:~ -~ ~~ &a~ *a { } [ ] ,~ <<:~ !!str~ !x~ ?~ " ' % # 0x_ 1 null get_param""".replace(
    "~", "\0"
).split()
BREAKS = ["\n", "\t", "|\n", ">-\n", "---\n", "...\n", "heat_template_version: 2018-08-31\n", "resources:\n"]
yaml_pieces = st.lists(st.sampled_from(PIECES + BREAKS), max_size=40).map(
    lambda some: "".join(some).replace("\0", " ")
)


@settings(max_examples=examples(500))
@given(yaml_pieces)
def test_almost_valid_yaml_is_read_like_pyyaml_or_refused(text):
    try:
        result = parse(text, LIMITS)
    except InvalidTemplate:
        return
    try:
        expected = read(text)
    except (yaml.YAMLError, ValueError, TypeError):
        return  # we may accept documents that PyYAML refuses: a duplicate anchor, a bare "<<"
    assert result == (expected or {})
