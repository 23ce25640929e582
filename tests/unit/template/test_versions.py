"""Which versions there are and which functions each of them has."""

import pytest

from orchestrator.errors import InvalidTemplate
from orchestrator.template import versions
from orchestrator.template.parse import Limits
from orchestrator.template.template import load

LIMITS = Limits()


def refusal(source):
    with pytest.raises(InvalidTemplate) as caught:
        load(source, LIMITS)
    return caught.value


@pytest.mark.parametrize("version", versions.VERSIONS)
@pytest.mark.parametrize("quote", ["", '"'])
def test_every_version_is_accepted_quoted_or_not(version, quote):
    assert load(f"heat_template_version: {quote}{version}{quote}", LIMITS).version == version


@pytest.mark.parametrize(("alias", "date"), versions.ALIASES.items())
def test_an_alias_means_its_date(alias, date):
    assert load({"heat_template_version": alias}, LIMITS).version == date


def test_each_version_has_as_many_functions_as_heats():
    assert [len(versions.functions_of(v)) for v in versions.VERSIONS] == [
        16,
        8,
        10,
        10,
        11,
        14,
        16,
        21,
        21,
        21,
        21,
    ]


def test_a_text_and_an_object_without_a_version_are_refused_differently():
    assert str(refusal("resources: {}")) == "Template format version not found."
    assert str(refusal("")) == "Template format version not found."
    assert (
        str(refusal({"resources": {}}))
        == "The template version is invalid: Template version was not provided"
    )
    assert refusal({}).heat_type == "InvalidTemplateVersion"


def test_an_unknown_version_is_refused_with_the_list_of_versions():
    error = refusal("heat_template_version: 2099-01-01")
    assert str(error).startswith(
        'The template version is invalid: "heat_template_version: 2099-01-01". '
        '"heat_template_version" should be one of: 2013-05-23, 2014-10-16, '
    )
    assert str(error).endswith(", newton, ocata, pike, queens, rocky, wallaby")
    assert error.heat_type == "InvalidTemplateVersion"
    assert (error.diagnostics[0].line, error.diagnostics[0].column) == (1, 1)


def test_two_version_keys_are_ambiguous():
    error = refusal({"heat_template_version": "2013-05-23", "AWSTemplateFormatVersion": "2010-09-09"})
    assert "Ambiguous versions (" in str(error)


@pytest.mark.parametrize(
    ("key", "version", "functions"),
    [("AWSTemplateFormatVersion", "2010-09-09", 12), ("HeatTemplateFormatVersion", "2012-12-12", 11)],
)
def test_the_other_dialect_has_versions_of_its_own(key, version, functions):
    read = load({key: version}, LIMITS)
    assert read.version == f"{key}.{version}"
    assert len(read.form.callable) == functions
    assert f'"{key}" should be: {version}' in str(refusal({key: "2013-05-23"}))


def test_a_version_that_is_no_text_is_none():
    assert str(refusal("heat_template_version: 2013")).endswith("Template version was not provided")
