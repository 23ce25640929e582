"""Commands that display stacks, templates, resources and their errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.cli.command_line import Run, finished, run, stub
from tests.unit.cli.stub import Stub

__all__ = ["run", "stub"]  # fixtures


def test_a_refused_template_is_shown_with_every_fault_in_its_place(stub: Stub, run: Run) -> None:
    faults = [
        {
            "code": "unknown-type",
            "message": "No such type X",
            "path": "resources.a.type",
            "line": 3,
            "column": 13,
        },
        {
            "code": "unknown-section",
            "message": "No such section",
            "path": "odd",
            "line": 2,
            "column": 1,
            "hint": "Y?",
        },
    ]
    stub.refusal = (
        400,
        {"error": {"type": "StackValidationFailed", "message": "No such type X", "errors": faults}},
    )
    for command in (["validate"], ["stack", "create", "shop"]):
        result = run(*command, "-t", "t.yaml")
        assert result.exit_code == 1
        assert "t.yaml is not valid: 2 errors" in result.output
        assert "t.yaml:3:13: error: No such type X" in result.output
        assert "  a: {type: OS::Heat::None}" in result.output  # the line itself


def test_a_failure_is_json_too_when_json_was_asked_for(stub: Stub, run: Run) -> None:
    result = run("stack", "show", "nope", "--json")
    error = json.loads(result.stdout)["error"]
    assert (result.exit_code, error["status"], error["type"]) == (1, 404, "EntityNotFound")


@pytest.mark.parametrize(
    ("message", "hint"),
    [
        ("Access was denied to this resource.", "ORCHESTRATOR_PROJECT"),
        ("You are not authorized to use stacks:create.", "a role that you do not have"),
    ],
)
def test_a_refusal_says_what_to_look_at(stub: Stub, run: Run, message: str, hint: str) -> None:
    stub.refusal = (403, {"error": {"message": message}})
    result = run("stack", "list")
    assert result.exit_code == 5
    assert message in result.output
    assert hint in result.output


def test_lists_and_tables_are_one_line_a_row_however_long(stub: Stub, run: Run) -> None:
    stack = finished(stub, "s" * 200)
    stack.resources = [
        {
            "resource_name": "r" * 150,
            "resource_type": "T",
            "resource_status": "CREATE_FAILED",
            "resource_status_reason": "why " * 50,
            "physical_resource_id": "",
        }
    ]
    listed = run("stack", "list").output.splitlines()
    assert len(listed) == 2
    assert listed[1].split() == ["s" * 200, "CREATE_COMPLETE", "2026-01-31T12:00:00Z", stack.id]
    assert len(run("stack", "resources", "s" * 200).output.splitlines()) == 2


def test_an_empty_project_is_said_to_be_empty_and_is_an_empty_list_in_json(run: Run) -> None:
    assert run("stack", "list").output == "Project demo has no stacks.\n"
    assert json.loads(run("stack", "list", "--json").output) == {"stacks": []}


def test_an_output_is_printed_bare_so_that_a_script_can_use_it(stub: Stub, run: Run) -> None:
    stack = finished(stub)
    stack.outputs = [
        {"output_key": "url", "output_value": "https://x/"},
        {"output_key": "map", "output_value": {"a": [1]}},
        {"output_key": "bad", "output_value": None, "output_error": "no such attribute"},
    ]
    assert run("stack", "outputs", "shop", "url").output == "https://x/\n"
    assert json.loads(run("stack", "outputs", "shop", "map", "--json").output)["output"]["output_value"] == {
        "a": [1]
    }
    broken = run("stack", "outputs", "shop", "bad")
    assert (broken.exit_code, broken.output) == (1, "Error: output bad has no value: no such attribute\n")
    assert run("stack", "outputs", "shop").output == (
        "  url = https://x/\n  map\n    a:\n    - 1\n  bad = (no such attribute)\n"
    )


def test_a_secret_output_is_printed_on_request_only(stub: Stub, run: Run) -> None:
    stack = finished(stub)
    stack.outputs = [{"output_key": "password", "output_value": "sesame", "secret": True}]
    for command in (("stack", "outputs", "shop"), ("stack", "show", "shop")):
        printed = run(*command).output
        assert "sesame" not in printed
        assert "password = ******" in printed
        assert "orchestrator stack outputs STACK OUTPUT" in printed
    assert run("stack", "outputs", "shop", "password").output == "sesame\n"
    assert "sesame" in run("stack", "outputs", "shop", "--json").output


def test_what_a_provider_said_cannot_move_the_cursor(stub: Stub, run: Run) -> None:
    stack = stub.add("shop", status="CREATE_FAILED")
    stack.happen("a", "CREATE_FAILED", "\x1b[2Jgone\x07")
    result = run("stack", "events", "shop")
    assert "�[2Jgone�" in result.output


def test_a_template_comes_back_as_yaml_or_json(stub: Stub, run: Run) -> None:
    finished(stub, template={"heat_template_version": "2018-08-31", "resources": {}})
    assert run("stack", "template", "shop").output == "heat_template_version: '2018-08-31'\nresources: {}\n"
    assert json.loads(run("stack", "template", "shop", "--json").output)["resources"] == {}


def test_a_valid_template_shows_its_parameters(run: Run) -> None:
    result = run("validate", "-t", "t.yaml")
    assert result.output.splitlines() == [
        "t.yaml is valid.",
        "fine",
        "PARAMETER  TYPE    DEFAULT  DESCRIPTION",
        "size       Number  4",
    ]


def test_warnings_are_shown_with_their_source_line_and_refuse_nothing(stub: Stub, run: Run) -> None:
    warning = {"code": "wrong-value", "message": "It is odd", "path": "resources.a", "severity": "warning"}
    stub.validation = {"warnings": [{**warning, "line": 3, "column": 6}]}
    result = run("validate", "-t", "t.yaml")
    assert result.exit_code == 0
    assert result.output.splitlines()[:4] == [
        "t.yaml:3:6: warning: It is odd [wrong-value]",
        " 3 |   a: {type: OS::Heat::None}",
        "   |      ^",
        "t.yaml is valid, with 1 warning.",
    ]


def test_resource_types_are_listed_by_pattern_and_shown(run: Run, stub: Stub) -> None:
    types = [
        {"resource_type": "OS::Heat::Delay", "description": "Waits."},
        {"resource_type": "OS::Heat::None", "description": "Nothing."},
    ]
    stub.answers["GET resource_types"] = {"resource_types": types}
    assert run("resource-type", "list", "delay").output.splitlines()[1:] == ["OS::Heat::Delay  Waits."]
    assert run("resource-type", "list", "*::Server").output == "No resource type matches *::Server.\n"
    stub.answers["GET resource_types/OS%3A%3AHeat%3A%3ADelay"] = {
        "resource_type": "OS::Heat::Delay",
        "properties": {
            "wait": {"type": "number", "default": 0, "update_allowed": True, "description": "Seconds."}
        },
        "attributes": {"show": {"type": "map", "description": "Details."}},
    }
    shown = run("resource-type", "show", "OS::Heat::Delay").output
    assert "wait  number  0        yes        Seconds." in shown
    assert "show  map   Details." in shown


def test_a_resource_is_shown_with_its_attributes(run: Run, stub: Stub) -> None:
    body = {
        "resource_name": "a", "resource_type": "T", "resource_status": "CREATE_COMPLETE",
        "resource_status_reason": "state changed", "physical_resource_id": "p-1", "required_by": ["b", "c"],
        "creation_time": "2026-01-31T12:00:00Z", "updated_time": None, "attributes": {"size": 3}, "links": [],
    }  # fmt: skip
    stub.add("shop", answers={"resources/a": {"resource": body}})
    shown = run("resource", "show", "shop", "a").output
    assert "required by  b, c" in shown
    assert "  size = 3" in shown
    assert json.loads(run("resource", "show", "shop", "a", "--json").output)["resource"] == body


GRAPH = """
heat_template_version: 2018-08-31
resources:
  net: {type: Net}
  port: {type: Port, properties: {network: {get_resource: net}}}
  server:
    type: Server
    depends_on: net
    properties: {port: {get_attr: [port, id]}}
"""


def test_the_graph_of_a_template_is_drawn_without_a_server(run: Run, stub: Stub) -> None:
    Path("g.yaml").write_text(GRAPH)
    assert run("graph", "-t", "g.yaml").output.splitlines() == [
        "graph TD", '    r0["net<br/>Net"]', '    r1["port<br/>Port"]', '    r2["server<br/>Server"]',
        "    r0 --> r1", "    r0 --> r2", "    r1 --> r2",
    ]  # fmt: skip
    assert '    "port" -> "server";' in run("graph", "-t", "g.yaml", "--format", "dot").output.splitlines()
    assert stub.requests == []


def test_the_graph_of_a_stack_has_its_statuses(run: Run, stub: Stub) -> None:
    resources = [
        {
            "resource_name": "a",
            "resource_type": "T",
            "resource_status": "CREATE_FAILED",
            "required_by": ["b"],
        },
        {"resource_name": "b", "resource_type": "T", "resource_status": "INIT_COMPLETE", "required_by": []},
    ]
    stub.add("shop", resources=resources)
    drawn = run("graph", "shop").output
    assert "    r0 --> r1" in drawn
    assert "    class r0 FAILED" in drawn
    assert run("graph", "shop", "-t", "t.yaml").exit_code == 1
