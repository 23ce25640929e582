"""docs/template-language.md is correct: its examples are parsed, resolved and refused as described."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from orchestrator.cli.exit_codes import ApiFailure
from orchestrator.config import Settings
from orchestrator.errors import InvalidTemplate
from orchestrator.operations.context import OperationContext
from orchestrator.operations.request_body import StackRequest
from orchestrator.operations.validation.request import validate_request
from orchestrator.resources.registry import load_registry
from orchestrator.security.caller import for_project
from orchestrator.template import versions
from orchestrator.template.definition import ParentResourceProxy, ResourceProxy, StackDefinition
from orchestrator.template.environment import Environment
from orchestrator.template.environment_files import merge_environment_files
from orchestrator.template.formats import all_formats
from orchestrator.template.parameters import TYPES, ParameterSchema, ParameterValues
from orchestrator.template.parse import Limits
from orchestrator.template.template import Template, load, read

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "template-language.md").read_text()
LATEST = versions.LATEST
FILES = {"motd.txt": "Welcome"}
ATTRIBUTES = {"output": "hello"}
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
KEYS = ("heat_template_version", "AWSTemplateFormatVersion")
Row = tuple[str, ...]


def section(title: str) -> str:
    """Return the text below a heading, up to the next heading of the same or a higher level."""
    level, _, rest = TEXT.partition(f" {title}\n")
    mark = level.rsplit("\n", 1)[-1]
    assert rest, title
    return re.split(rf"^#{{1,{len(mark)}}} ", rest, maxsplit=1, flags=re.MULTILINE)[0]


def rows(text: str, header: str) -> list[Row]:
    """Return the cells of the table with this header; those that are code as a whole without its marks."""
    body = text[text.index(header) :].split("\n\n", maxsplit=1)[0].splitlines()[2:]
    return [tuple(map(bare, re.split(r"(?<!\\)\|", line)[1:-1])) for line in body]


def bare(cell: str) -> str:
    cell = cell.strip().replace(r"\|", "|")
    return cell[1:-1] if re.fullmatch("`[^`]*`", cell) else cell


def plain(text: str) -> Any:
    """Return a value as YAML has it, dates apart."""
    return yaml.load(text, Loader=yaml.BaseLoader) if re.match(r"\d{4}-", text) else yaml.safe_load(text)


def template_in(text: str) -> str:
    """Return the first template in a text."""
    return next(
        block for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL) if block.startswith(KEYS)
    )


def called(name: str) -> str:
    """Return the block that begins with a comment of this name."""
    return next(body for _, body in BLOCKS if body.startswith(f"# {name}\n"))


def values(template: str) -> ParameterValues:
    return ParameterValues.build(
        read(template, Limits()).parameters, {}, {}, {}, parent=ParentResourceProxy()
    )


def outputs(template: str) -> dict[str, Any]:
    """Return the outputs of a template after its `server` is created."""
    supplied = values(template)
    loaded = load(template, Limits(), supplied)
    assert loaded.warnings == ()
    made = {
        name: ResourceProxy(name, f"{name.lower()}-1", ATTRIBUTES, "CREATE", "COMPLETE")
        for name in loaded.resources
    }
    view = StackDefinition(
        loaded.version,
        supplied,
        made,
        FILES.get,
        mappings=loaded.mappings,
    )
    return {name: view.resolve(output.value) for name, output in loaded.outputs.items()}


HOT_CONTEXT = template_in(section("Functions"))
CFN_CONTEXT = template_in(section("The CloudFormation dialect"))
FUNCTIONS = rows(TEXT, "| Function | Since | Arguments | Example | Result |")
CONDITIONS = rows(TEXT, "| Function | Since | Arguments | Example | Value |")
CFN = rows(TEXT, "| Function | Arguments | Example | Result |")


@pytest.mark.parametrize("row", [row for row in FUNCTIONS if row[4]], ids=lambda row: row[0])
def test_a_function_returns_the_value_in_the_table(row: Row) -> None:
    text = f"{HOT_CONTEXT}outputs:\n  example: {{value: {row[3]}}}\n"
    assert outputs(text)["example"] == plain(row[4])


@pytest.mark.parametrize("row", CONDITIONS, ids=lambda row: row[0])
def test_a_condition_holds_when_the_table_says(row: Row) -> None:
    written = HOT_CONTEXT.replace("resources:", f"  example: {row[3]}\nresources:")
    text = f"{written}outputs:\n  example: {{value: {{if: [example, 'true', 'false']}}}}\n"
    assert outputs(text)["example"] == row[4]


@pytest.mark.parametrize("row", [row for row in CFN if row[3]], ids=lambda row: row[0])
def test_a_cloudformation_function_returns_the_value_in_the_table(row: Row) -> None:
    text = f"{CFN_CONTEXT}Outputs:\n  Example: {{Value: {row[2]}}}\n"
    assert outputs(text)["Example"] == plain(row[3])


def test_the_tables_have_every_function_and_the_version_it_came_with() -> None:
    assert {row[0]: row[1] for row in FUNCTIONS} == {
        name: versions.since(name) for name in versions.functions_of(LATEST)
    }
    assert {row[0] for row in CONDITIONS} == versions.conditions_of(LATEST)
    for name, since, *_ in CONDITIONS:
        having = [version for version in versions.VERSIONS if name in versions.conditions_of(version)]
        assert since == min(having)
    assert {row[0] for row in CFN} == {*versions.CFN_FUNCTIONS, "Fn::If"}


def test_the_formats_are_those_that_there_are() -> None:
    listed = rows(TEXT, "| Key | Versions | Also called |")
    result: dict[str, set[str]] = {}
    for form in all_formats().values():
        result.setdefault(form.key, set()).add(form.version)
    reported = {
        re.findall(r"`(\w+)`", f"`{key}`")[0]: set(re.findall(r"\d{4}-\d\d-\d\d", all_))
        for key, all_, _ in listed
    }
    assert reported == result
    assert set(re.findall(r"`([a-z]+)`", listed[0][2])) == set(versions.ALIASES)


@pytest.mark.parametrize("row", rows(TEXT, "| Type | Given | Converted |"), ids=lambda row: "-".join(row[:2]))
def test_a_value_is_converted_as_the_table_says(row: Row) -> None:
    kind, supplied, observed = row
    made = ParameterSchema("p", kind).convert(plain(supplied))
    assert (made, type(made)) == (plain(observed), type(plain(observed)))


def constrained(row: Row, kind: str) -> ParameterSchema:
    return ParameterSchema.from_hot("p", {"type": kind, "constraints": [plain(row[0])]}, LATEST)


CONSTRAINTS = rows(TEXT, "| Constraint | For types | Rejected | Message |")


@pytest.mark.parametrize("row", CONSTRAINTS, ids=lambda row: row[0].partition(":")[0])
def test_a_constraint_refuses_in_the_words_of_the_table(row: Row) -> None:
    kinds = row[1].split(", ")
    schema = constrained(row, kinds[0])
    assert schema.broken(schema.convert(plain(row[2]))) == row[3]
    for kind in TYPES:
        if kind in kinds:
            constrained(row, kind)
        else:
            with pytest.raises(InvalidTemplate):
                constrained(row, kind)


def documents() -> Iterator[tuple[str, str]]:
    for (kind, body), (next_kind, _) in zip(BLOCKS, [*BLOCKS[1:], ("", "")], strict=True):
        if kind == "yaml" and next_kind != "text":
            yield body, body.splitlines()[0]


@pytest.mark.parametrize("body", [body for body, first in documents() if first.startswith(KEYS)])
def test_an_example_is_a_template_without_a_fault_or_a_warning(body: str) -> None:
    loaded: Template = load(body, Limits(), values(body))
    assert loaded.warnings == ()


def test_the_example_without_an_else_returns_the_documented_value() -> None:
    at = next(index for index, (_, body) in enumerate(BLOCKS) if body.startswith("# outputs"))
    assert outputs(BLOCKS[at - 1][1]) == plain(BLOCKS[at][1])


def test_the_registry_of_the_example_leads_where_the_comments_say() -> None:
    registry = Environment.parse(called("environment")).registry()

    def leads(kind: str, name: str = "any") -> str | None:
        target = registry.target(name, kind)
        return target and target.name

    assert leads("Shop::Password") == "OS::Heat::RandomString"
    assert leads("OS::Nova::Server") == "OS::Heat::None"
    assert leads("Shop::TillResource") == "OS::Heat::TestResource"
    assert leads("Shop::Shelf") == "shelf.yaml"
    assert (leads("Shop::Lock", "door"), leads("Shop::Lock")) == ("OS::Heat::None", "Shop::Lock")
    assert registry.hooks("door_1") == {"pre-create"}
    assert registry.restricted_actions("door_1") == {"update", "replace"}


def test_the_files_of_the_example_merge_as_shown() -> None:
    names = ("base.env.yaml", "more.env.yaml")
    schemas = {
        name: ParameterSchema(name, kind)
        for name, kind in (("zones", "comma_delimited_list"), ("limits", "json"), ("name", "string"))
    }
    merged = merge_environment_files(names, {name: called(name) for name in names}, schemas, Environment())
    assert merged.parameters == plain(called("merged"))


def vetted(text: str, *, strict: bool, **options: Any) -> list[str]:
    """Return the warnings of a request, with `strict` as when a stack is made."""
    nobody = cast(Any, None)  # nothing is stored
    context = OperationContext(nobody, nobody, for_project(None, "demo"), Settings(), load_registry())
    faults = validate_request(context, StackRequest(text, "s", **options), stack_uuid="None", strict=strict)
    return [warning.code for warning in faults.warnings]


NESTED = {"nested.yaml": f"heat_template_version: {LATEST}\nresources: {{a: {{type: Nobody::Knows}}}}\n"}
EXCUSED = {
    "no value": ("parameters: {p: {type: string}}", {}, []),
    "wrong value": (
        "resources: {a: {type: OS::Heat::RandomString, properties: {length: x}}}",
        {},
        ["wrong-value"],
    ),
    "missing property": ("resources: {a: {type: OS::Heat::Value}}", {}, ["missing-property"]),
    "unknown parameter": (
        "resources: {a: {type: OS::Heat::Value, properties: {value: {get_param: p}}}}",
        {},
        ["unknown-parameter"],
    ),
    "nested": ("resources: {a: {type: nested.yaml}}", {"files": NESTED}, ["unknown-type"]),
}
CHECKED = {
    "a type": "resources: {a: {type: Nobody::Knows}}",
    "a property": "resources: {a: {type: OS::Heat::Value, properties: {valeu: 1}}}",
    "an attribute": "resources: {a: {type: OS::Heat::None}}\noutputs: {o: {value: {get_attr: [b, c]}}}",
    "a type that is not installed": "resources: {a: {type: OS::Nova::Server}}",
}
WARNED = {
    "duplicate-key": "description: one\ndescription: two",
    "mistyped-function": "outputs: {o: {value: {get_prarm: p}}}",
    "unknown-key": "outputs: {o: {value: 1, valeu: 2}}",
    "condition": "conditions: {c: {not: d}}",
}


@pytest.mark.parametrize("what", EXCUSED)
def test_validate_accepts_the_entries_of_the_table_and_create_refuses_them(what: str) -> None:
    text, additional, warnings = EXCUSED[what]
    text = f"heat_template_version: {LATEST}\n{text}\n"
    assert vetted(text, strict=False, **additional) == warnings
    with pytest.raises(InvalidTemplate):
        vetted(text, strict=True, **additional)


@pytest.mark.parametrize("what", CHECKED)
def test_validate_and_create_refuse_the_entries_of_the_table(what: str) -> None:
    for strict in (False, True):
        with pytest.raises(InvalidTemplate):
            vetted(f"heat_template_version: {LATEST}\n{CHECKED[what]}\n", strict=strict)


@pytest.mark.parametrize("code", WARNED)
def test_warnings_refuse_nothing(code: str) -> None:
    assert vetted(f"heat_template_version: {LATEST}\n{WARNED[code]}\n", strict=True) == [code]


def test_a_mapping_that_is_no_map_of_maps_is_warned_of() -> None:
    assert vetted("AWSTemplateFormatVersion: 2010-09-09\nMappings: {m: 1}\n", strict=True) == [
        "mapping-not-a-map"
    ]


def test_a_refusal_is_shown_as_on_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    at = next(index for index, (kind, _) in enumerate(BLOCKS) if kind == "text")
    text, shown = BLOCKS[at - 1][1], BLOCKS[at][1]
    with pytest.raises(InvalidTemplate) as caught:
        vetted(text, strict=False)
    faults = [dataclasses.asdict(fault) for fault in caught.value.diagnostics]
    failure = ApiFailure(400, {"error": {"message": str(caught.value), "errors": faults}}, None)
    failure.explained(Path("shop.yaml"), text).show()
    assert capsys.readouterr().err == shown
