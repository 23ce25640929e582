"""Every real template is read as PyYAML reads it, and everything in it is found where it is."""

from pathlib import Path

import pytest

from orchestrator.errors import Diagnostic
from orchestrator.template.parse import Limits, locate, parse
from tests.property.corpus import CORPUS, TEMPLATES, name
from tests.property.yaml_reference import given_twice, places, read

if not TEMPLATES:
    pytest.skip(f"the corpus of templates is not at hand in {CORPUS.parent}", allow_module_level=True)

every_template = pytest.mark.parametrize("path", TEMPLATES, ids=name)


@every_template
def test_a_real_template_is_read_as_pyyaml_reads_it(path: Path) -> None:
    text = path.read_bytes()
    assert parse(text, Limits()) == read(text)
    assert parse(text.decode(), Limits()) == read(text)


@every_template
def test_everything_in_a_real_template_is_found_where_pyyaml_has_it(path: Path) -> None:
    text = path.read_bytes()
    expected = places(text)
    result = locate(text, expected)
    assert {place: at for place, at in result.items() if expected[place] != at} == {}
    assert len(result) == len(expected) > 0


@every_template
def test_a_real_template_is_far_from_every_bound(path: Path) -> None:
    assert parse(path.read_bytes(), Limits(max_bytes=524_288, max_depth=50, max_nodes=100_000))


@every_template
def test_exactly_the_repeated_keys_of_real_templates_are_reported(path: Path) -> None:
    warnings: list[Diagnostic] = []
    parse(path.read_bytes(), Limits(), warnings=warnings)
    reported = [(warning.line, warning.column) for warning in warnings if warning.code == "duplicate-key"]
    assert reported == given_twice(path.read_bytes())
