"""The parser agrees with PyYAML on everything it accepts, and refuses the rest in one way only."""

import json
import math
import os
from pathlib import Path

import orjson
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.errors import InvalidTemplate
from orchestrator.template.definition import ResourceProxy, StackDefinition
from orchestrator.template.environment import Environment
from orchestrator.template.parameters import ParameterValues
from orchestrator.template.parse import Limits, locate, parse
from orchestrator.template.scalars import plain
from orchestrator.template.template import load

LIMITS = Limits(max_depth=50)
ROOT = Path(__file__).resolve().parents[2]
CORPUS = Path(os.environ.get("CORPUS_DIR") or ROOT.parent / "shared" / "corpus") / "templates"
TEMPLATES = [path for path in sorted(CORPUS.rglob("*")) if path.suffix in {".yaml", ".template", ".json"}]

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


class DatesAsTexts(yaml.CSafeLoader):
    """PyYAML's safe loader, dates apart."""


DatesAsTexts.add_constructor("tag:yaml.org,2002:timestamp", yaml.CSafeLoader.construct_yaml_str)


def attempt(read):
    """Return what `read` gives, or the fault it refuses with; anything else it raises fails the test."""
    try:
        return read(), None
    except InvalidTemplate as error:
        return None, error


def reference(text):
    """Return what PyYAML reads, its keys as JSON writes them."""
    return json.loads(json.dumps(yaml.load(text, Loader=DatesAsTexts)))


@given(documents, st.booleans(), st.booleans())
def test_generated_yaml_is_read_as_pyyaml_reads_it(document, flow, unicode):
    text = yaml.safe_dump(document, default_flow_style=flow, allow_unicode=unicode, sort_keys=False)
    assert parse(text, LIMITS) == reference(text)
    if not unicode:  # PyYAML writes some line breaks as they are and then reads them as spaces
        assert parse(text, LIMITS) == document


@given(documents)
def test_generated_json_is_read_exactly(document):
    assert parse(orjson.dumps(document), LIMITS) == document
    assert parse(json.dumps(document, indent="\t"), LIMITS) == document


@given(st.from_regex(r"\A[-+.0-9_:xobeEtTzZ ~yYnoasefrul<=]{0,12}\Z"))
def test_an_unquoted_scalar_means_what_pyyaml_says(text):
    try:
        expected = DatesAsTexts("").construct_object(
            yaml.ScalarNode(DatesAsTexts("").resolve(yaml.ScalarNode, text, (True, False)), text)
        )
    except (yaml.YAMLError, ValueError, OverflowError):
        return  # no value to agree on
    try:
        assert plain(text) == expected
    except ValueError:
        assert (
            not -(2**63) <= expected < 2**64
            or expected in (float("inf"), float("-inf"))
            or math.isnan(expected)
        )


@given(documents)
def test_every_place_of_a_document_is_found_again(document):
    text = yaml.safe_dump(document, sort_keys=False)
    paths = [(key,) for key in document]
    found = locate(text, paths)
    assert set(found) == set(paths)
    lines = text.splitlines()
    assert [line for line, _ in found.values()] == sorted(line for line, _ in found.values())
    assert all(1 <= line <= len(lines) and column >= 1 for line, column in found.values())


@settings(max_examples=300)
@given(st.binary(max_size=200) | st.text(max_size=200))
def test_random_input_is_read_or_refused_and_nothing_else(text):
    for read in (
        lambda: parse(text, LIMITS),
        lambda: load(text, LIMITS),
        lambda: Environment.parse(text, LIMITS),
    ):
        _, refused = attempt(read)
        assert refused is None or str(refused)
    assert locate(text, [("a", 0)]) is not None


PIECES = r"""a:~ -~ ~~ &a~ *a { } [ ] ,~ <<:~ !!str~ !x~ ?~ " ' % # 0x_ 1 null get_param""".replace(
    "~", "\0"
).split()
BREAKS = ["\n", "\t", "|\n", ">-\n", "---\n", "...\n", "heat_template_version: 2018-08-31\n", "resources:\n"]
yaml_pieces = st.lists(st.sampled_from(PIECES + BREAKS), max_size=40).map(
    lambda some: "".join(some).replace("\0", " ")
)


@settings(max_examples=500)
@given(yaml_pieces)
def test_what_nearly_is_yaml_is_read_like_pyyaml_or_refused(text):
    try:
        found = parse(text, LIMITS)
    except InvalidTemplate:
        return
    try:
        expected = reference(text)
    except (yaml.YAMLError, ValueError, TypeError):
        return  # we may accept what PyYAML trips over: an anchor given twice, a bare "<<"
    assert found == (expected or {})


SECTIONS = ["parameters", "resources", "outputs", "parameter_groups", "description", "conditions", "zz"]
KEYS = [
    "type",
    "properties",
    "metadata",
    "depends_on",
    "update_policy",
    "deletion_policy",
    "value",
    "default",
]
named = st.dictionaries(
    words, st.dictionaries(st.sampled_from([*KEYS, "constraints", "label", "hidden"]), values)
)


@settings(max_examples=100)
@given(
    st.dictionaries(st.sampled_from(SECTIONS), values | named),
    st.sampled_from(["2013-05-23", "2015-10-15", "wallaby"]),
)
def test_any_document_is_a_template_or_refused(sections, version):
    document = {"heat_template_version": version, **sections}
    read, refused = attempt(lambda: load(document, LIMITS))
    if refused:
        assert all(fault.message and fault.code for fault in refused.diagnostics)
    else:
        assert orjson.loads(orjson.dumps(read.outline()))["version"] == read.version


calls = st.sampled_from(
    ["get_param", "get_resource", "get_attr", "str_replace", "list_join", "repeat", "Ref"]
)


def replacing(template, params):
    return {"str_replace": {"template": template, "params": params}}


expressions = st.recursive(
    leaves | st.sampled_from(["p", "r", "x"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.builds(lambda name, args: {name: args}, calls, inner)
        | st.builds(
            lambda t, p: {"str_replace": {"template": t, "params": p}},
            inner,
            st.dictionaries(words, inner, max_size=2),
        )
    ),
    max_leaves=12,
)


@settings(max_examples=300)
@given(expressions, st.sampled_from(["2013-05-23", "2018-08-31"]), st.booleans())
def test_an_expression_that_load_accepts_resolves_or_says_where_it_cannot(expression, version, strict):
    document = {
        "heat_template_version": version,
        "parameters": {"p": {"type": "string", "default": "v"}},
        "resources": {"r": {"type": "T"}, "a": {"type": "T", "properties": {"e": expression}}},
    }
    try:
        body = load(document, LIMITS).resources["a"].body
    except InvalidTemplate:
        return
    proxies = {name: ResourceProxy(name, None, {"x": [1]}, "CREATE", "COMPLETE") for name in ("r", "a")}
    proxies["a"] = ResourceProxy("a", None, {}, "INIT", "COMPLETE")
    seen = StackDefinition(version, ParameterValues({"p": "v"}), proxies, strict=strict)
    _, refused = attempt(lambda: seen.resolve(body["properties"], "here"))
    assert refused is None or refused.diagnostics[0].path.startswith("here")


@pytest.mark.skipif(not TEMPLATES, reason="the corpus of templates is not at hand")
@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.relative_to(CORPUS).as_posix())
def test_every_template_of_the_corpus_is_read_as_pyyaml_reads_it(path):
    text = path.read_bytes()
    assert parse(text, Limits()) == reference(text)
