"""Language extensions by packages; a broken package does not affect the rest."""

from __future__ import annotations

import re
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

import pytest

from orchestrator.errors import InvalidTemplate, Misconfigured
from orchestrator.template import formats, hot_formats, versions
from orchestrator.template.formats import Installed, collect
from orchestrator.template.functions import FunctionError, References, plain
from orchestrator.template.functions.registry import GROUP, is_call
from orchestrator.template.functions.registry import collect as collect_functions

ROOT = Path(__file__).parents[3]
HERE = __name__
OURS = tuple(entry_points(group=formats.GROUP))
GREETING = plain("greeting", lambda name: f"Hello {name}", form="greeting takes a name")
NOT_FORMATS = ("a text", "another")


def a_format(name: str, value: str) -> EntryPoint:
    return EntryPoint(name, value, formats.GROUP)


def a_function(name: str, value: str) -> EntryPoint:
    return EntryPoint(name, value, GROUP)


def refusal(recorded: Installed, document: dict[str, object]) -> tuple[str, str]:
    with pytest.raises(InvalidTemplate) as caught:
        recorded.of(document, from_text=True)
    (fault,) = caught.value.diagnostics
    return fault.message, fault.hint


BROKEN = [
    pytest.param("no_such_module:FORMATS", "ModuleNotFoundError", id="gone"),
    pytest.param(f"{HERE}:NOTHING", "AttributeError", id="without it"),
    pytest.param(f"{HERE}:NOT_FORMATS", "TypeError: 'a text' is not a Format", id="text"),
    pytest.param("orchestrator.template.versions:LATEST", "TypeError: '2' is not a Format", id="one of ours"),
]


@pytest.mark.parametrize(("value", "why"), BROKEN)
def test_a_broken_package_leaves_every_other_format_working(value: str, why: str) -> None:
    recorded = collect([a_format("acme", value), *OURS])
    assert recorded.formats.keys() == collect(OURS).formats.keys()
    assert recorded.of({"heat_template_version": "rocky"}).name == "2018-08-31"
    assert why in recorded.broken["acme"]


def test_an_unknown_format_names_the_broken_package() -> None:
    recorded = collect([a_format("acme", "no_such_module:FORMATS"), *OURS])
    hint = "installed but not usable, the server's log contains the reason: acme"
    assert refusal(recorded, {"acme_template_version": "1"}) == ("Template format version not found.", hint)
    assert refusal(recorded, {"heat_template_version": "2099-01-01"})[1] == hint
    assert refusal(recorded, {"resources": {}})[1] == ""
    with pytest.raises(Misconfigured, match=r"acme_template_version\.1 is not installed.*No module named"):
        recorded.named("acme_template_version.1")


def test_without_a_broken_package_no_message_mentions_packages() -> None:
    assert refusal(collect(OURS), {"acme_template_version": "1"})[1] == ""
    assert collect(OURS).broken == {}


def test_a_package_cannot_replace_a_builtin_format() -> None:
    recorded = collect([a_format("a", f"{HERE}:TAKEN"), *OURS])
    assert (
        recorded.formats["2021-04-16"].functions.keys() == hot_formats.hot(versions.LATEST).functions.keys()
    )
    assert "a format 2021-04-16 already exists" in recorded.broken["a"]


def test_a_broken_function_is_an_error_of_its_callers() -> None:
    result = collect_functions([a_function("greet", "no_such_module:GREET")])["greet"]
    message = 'The function "greet" is installed but not usable'
    with pytest.raises(ValueError, match=message):
        result.check(["ada"], References())
    with pytest.raises(FunctionError, match=message):
        result.call(None, ["ada"])


def test_a_function_takes_no_name_of_the_language_or_of_another_package() -> None:
    points = [
        a_function("repeat", f"{HERE}:GREETING"),
        a_function("greeting", f"{HERE}:GREETING"),
        a_function("greeting", f"{HERE}:SECOND"),
    ]
    assert collect_functions(points) == {"greeting": GREETING}


def test_a_function_is_found_by_its_entry_point() -> None:
    result = collect_functions([a_function("farewell", f"{HERE}:GREETING")])
    with pytest.raises(FunctionError):
        result["farewell"].call()


def test_a_function_of_a_package_may_stand_where_a_value_is_wanted() -> None:
    assert is_call({"greeting": ["ada"]})
    assert not is_call({"salutation": ["ada"]})


def test_the_code_of_the_page_is_the_packages_that_is_tested() -> None:
    package = ROOT / "tests" / "plugins" / "dialect"
    code = [path.read_text() for path in (package / "pyproject.toml", *sorted(package.glob("*/*.py")))]
    quoted = re.findall(
        r"```(?:python|toml)\n(.*?)```", (ROOT / "docs" / "language-plugins.md").read_text(), re.DOTALL
    )
    assert len(quoted) == 5
    for block in quoted:
        assert any(block in text for text in code), block


TAKEN = (hot_formats.hot(versions.LATEST),)
SECOND = plain("greeting", lambda name: name, form="")
