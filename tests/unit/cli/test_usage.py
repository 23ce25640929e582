"""The conventions of all commands: help, usage errors, suggestions, filters, extras, completion."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from orchestrator.cli import lazy_group
from orchestrator.cli.commands import stack as stack_commands
from orchestrator.cli.main import COMMANDS, main
from tests.unit.cli.command_line import TEMPLATE, Run, run, stub
from tests.unit.cli.stub import Stub

__all__ = ["run", "stub"]  # fixtures


def every_command(
    group: click.Group = main, path: tuple[str, ...] = ()
) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield " ".join((*path, name)), command
        if isinstance(command, click.Group):
            yield from every_command(command, (*path, name))


EVERY = dict(every_command())


@pytest.mark.parametrize("path", EVERY)
def test_every_command_has_help_for_itself_and_each_option_and_ends_with_1_after_a_usage_error(
    path: str,
) -> None:
    command = EVERY[path]
    assert command.help
    assert command.help.splitlines()[0].endswith(".")
    for parameter in command.params:
        assert not isinstance(parameter, click.Option) or parameter.help, parameter.name
    shown = CliRunner().invoke(main, [*path.split(), "-h"])
    assert (shown.exit_code, shown.output.startswith("Usage: ")) == (0, True)
    invalid = CliRunner().invoke(main, [*path.split(), "--no-such-option"])
    assert (invalid.exit_code, "No such option" in invalid.output) == (1, True)


@pytest.mark.parametrize("entries", [COMMANDS, stack_commands.COMMANDS], ids=["main", "stack"])
def test_the_help_line_in_the_table_is_the_first_line_of_the_command(
    entries: dict[str, lazy_group.Entry],
) -> None:
    for name, entry in entries.items():
        module, _, attribute = entry.target.partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert command.help.splitlines()[0] == entry.help, name


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["stak"], "Did you mean 'stack'?"),
        (["stack", "creat"], "Did you mean 'create'?"),
        (["stack", "list", "--statuss", "x"], "--status"),
        (["stack", "list", "--status", "CREATE_FALED"], "did you mean CREATE_FAILED?"),
        (["stack", "resources", "shop", "--status", "complet"], "did you mean COMPLETE?"),
    ],
)
def test_a_mistyped_word_gets_a_suggestion(run: Run, stub: Stub, arguments: list[str], hint: str) -> None:
    result = run(*arguments)
    assert (result.exit_code, stub.requests) == (1, [])
    assert hint in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["stack", "create", "-t", "t.yaml", "s", "--wait-timeout", "5"], "no effect without --wait"),
        (["stack", "create", "-t", "t.yaml", "s", "--detailed-exitcode"], "no effect without --preview"),
        (["stack", "create", "-t", "t.yaml", "s", "--preview", "--wait"], "no effect with --preview"),
        (["stack", "update", "-t", "t.yaml", "s", "--clear-parameter", "a"], "no effect without --existing"),
        (["stack", "events", "s", "--wait-timeout", "5"], "no effect without --follow"),
        (["up", "--flower-port", "5556"], "no effect without --flower"),
    ],
)
def test_an_option_without_effect_is_an_error(
    run: Run, stub: Stub, arguments: list[str], message: str
) -> None:
    result = run(*arguments)
    assert (result.exit_code, stub.requests) == (1, [])
    assert message in result.output


@pytest.mark.parametrize(
    "arguments",
    [["stack", "create"], ["stack", "nonsense"], ["stack", "list", "--odd"], ["validate"], ["stack", "show"]],
)
def test_a_mistake_on_the_command_line_ends_with_one_because_two_means_changes(
    run: Run, arguments: list[str]
) -> None:
    result = run(*arguments)
    assert result.exit_code == 1
    assert "Usage" in result.output or "Error" in result.output


def test_a_template_can_come_from_standard_input(run: Run, stub: Stub) -> None:
    assert run("stack", "create", "-t", "-", "shop", input=TEMPLATE).exit_code == 0
    assert stub.requests[0][4]["template"] == TEMPLATE
    empty = run("validate", "-t", "-", input="")
    assert (empty.exit_code, "standard input is empty" in empty.output) == (1, True)


def test_an_empty_result_names_the_filter(run: Run, stub: Stub) -> None:
    stub.add("shop", status="CREATE_COMPLETE")
    stub.stacks[0].resources = []
    stub.answers["GET stacks"] = {"stacks": []}
    completed = run("stack", "list", "--status", "create_failed", "--tag", "x")
    assert completed.output == "No stack of project demo matches status CREATE_FAILED, tag x.\n"
    completed = run("stack", "resources", "shop", "--type", "OS::Heat::Nine")
    assert "No resource of stack shop matches type OS::Heat::Nine." in completed.output


def test_an_empty_project_is_refused_before_any_request(run: Run, stub: Stub) -> None:
    result = run("stack", "list", "--project", "")
    assert (result.exit_code, result.output) == (1, "Error: --project must not be empty\n")
    assert stub.requests == []


def test_an_empty_stack_name_is_refused_before_any_request(run: Run, stub: Stub) -> None:
    result = run("stack", "show", "")
    assert (result.exit_code, stub.requests) == (1, [])
    assert "Invalid value for 'STACK': a stack's name or id is required" in result.output


def test_an_address_outside_the_api_is_shown(run: Run, stub: Stub) -> None:
    stub.refusal = (404, {"error": {"message": "The resource could not be found."}})
    lines = run("stack", "list").output.splitlines()
    assert lines[0] == "Error: The resource could not be found."
    assert lines[1].endswith("/v1/demo/stacks is not an address of the API; check --url and --project")


@pytest.mark.parametrize("options", [("-P", "siz=5"), ("--clear-parameter", "siz")])
def test_an_update_of_an_existing_stack_refuses_unknown_parameters(
    run: Run, stub: Stub, options: tuple[str, str]
) -> None:
    stub.add("shop")
    for template in ((), ("-t", "t.yaml")):
        result = run("stack", "update", "--existing", "shop", *options, *template)
        assert result.output == 'Error: stack shop has no parameter siz\n  did you mean "size"?\n'
        assert result.exit_code == 1
    assert stub.requests_of("PATCH") == []


def test_a_template_that_is_not_yaml_is_reported_with_its_place(run: Run) -> None:
    Path("broken.yaml").write_text("a: [\n")
    result = run("graph", "-t", "broken.yaml")
    assert result.output == (
        "Error: broken.yaml:2:1: not valid YAML: expected the node content, but found '<stream end>'\n"
    )


def test_a_bad_stack_name_and_a_bad_environment_are_not_blamed_on_the_template(run: Run, stub: Stub) -> None:
    name = {"code": "bad-stack-name", "message": "Invalid stack name a b", "path": "stack_name"}
    stub.refusal = (400, {"error": {"message": "Invalid stack name a b", "errors": [name]}})
    result = run("stack", "create", "-t", "t.yaml", "a b")
    assert result.output == "Error: the stack name: Invalid stack name a b\n"
    Path("e.yaml").write_text("parameter: {}\n")
    section = {"code": "x", "message": "wrong section", "file": "environment", "line": 1, "column": 1}
    stub.refusal = (400, {"error": {"message": "wrong section", "errors": [section]}})
    result = run("stack", "create", "-t", "t.yaml", "-e", "e.yaml", "shop")
    assert result.output.startswith("Error: e.yaml is not valid: 1 error\ne.yaml:1:1: error: wrong section")


def test_booleans_are_shown_as_in_the_template(run: Run, stub: Stub) -> None:
    stub.validation = {"Parameters": {"on": {"Type": "Boolean", "Default": "True"}}}
    assert "on         Boolean  true" in run("validate", "-t", "t.yaml").output


def test_validate_strict_makes_the_checks_of_create(run: Run, stub: Stub) -> None:
    assert run("validate", "--strict", "-t", "t.yaml").exit_code == 0
    path, body = stub.requests[-1][1], stub.requests[-1][4]
    assert (path.endswith("/stacks/preview"), body["template"]) == (True, TEMPLATE)
    assert body["stack_name"].startswith("validate-")
    stub.validation = {"warnings": [{"message": "odd", "path": "resources.a", "severity": "warning"}]}
    warned = run("validate", "--strict", "-t", "t.yaml")
    assert (warned.exit_code, "t.yaml is not valid: 1 warning" in warned.output) == (1, True)


ERROR = {"code": "wrong-value", "message": "It is odd", "path": "parameters.size", "severity": "error"}
WARNING = {"code": "duplicate-key", "message": "Twice", "severity": "warning", "line": 2, "column": 3}


def test_validate_fails_for_values_that_create_refuses_unless_it_is_lenient(run: Run, stub: Stub) -> None:
    stub.validation = {"errors": [{**ERROR, "file": "parameters", "hint": "size is declared elsewhere"}]}
    refused = run("validate", "-t", "t.yaml", "-P", "size=9")
    assert refused.exit_code == 1
    assert refused.output.splitlines() == [
        "Error: t.yaml is not valid: 1 error",
        "-P size: error: It is odd [wrong-value]",
        "  = hint: size is declared elsewhere",
    ]
    lenient = run("validate", "-t", "t.yaml", "-P", "size=9", "--lenient")
    assert lenient.exit_code == 0
    assert "`stack create` would refuse t.yaml: 1 error." in lenient.output
    assert run("validate", "-t", "t.yaml", "--lenient", "--strict").exit_code == 1


def test_a_long_default_does_not_widen_the_table_of_parameters(run: Run, stub: Stub) -> None:
    stub.validation = {
        "Parameters": {"long": {"Type": "String", "Default": "x" * 5000}, "s": {"Type": "Json"}}
    }
    assert max(map(len, run("validate", "-t", "t.yaml").output.splitlines())) < 120


def test_warnings_are_printed_for_accepted_requests_and_previews(run: Run, stub: Stub) -> None:
    Path("e.yaml").write_text("parameters:\n  a: 1\n  a: 2\n")
    stub.warnings = {"warnings": [{**WARNING, "file": "environment"}]}
    shown = "e.yaml:2:3: warning: Twice [duplicate-key]"
    lists: dict[str, list[object]] = {k: [] for k in ("added", "updated", "replaced", "deleted", "unchanged")}
    stub.preview = {"resources": []}
    stub.add("shop", changes=lists)
    for command in (("create", "new"), ("update", "shop")):
        for options in ((), ("--preview",)):
            result = run("stack", command[0], "-t", "t.yaml", "-e", "e.yaml", command[1], *options)
            assert (result.exit_code, shown in result.output) == (0, True), (command, options)


@pytest.mark.parametrize(("resources", "code"), [([], 0), ([{"resource_name": "a"}], 2)])
def test_detailed_exitcode_distinguishes_changes(
    run: Run, stub: Stub, resources: list[object], code: int
) -> None:
    stub.preview = {"resources": resources}
    arguments = ("stack", "create", "-t", "t.yaml", "shop", "--preview", "--json")
    assert run(*arguments).exit_code == 0
    assert run(*arguments, "--detailed-exitcode").exit_code == code
    lists: dict[str, list[object]] = {k: [] for k in ("added", "updated", "replaced", "deleted", "unchanged")}
    stub.add("shop", changes=lists | {"deleted": resources})
    update = ("stack", "update", "-t", "t.yaml", "shop", "--preview", "--json", "--detailed-exitcode")
    assert run(*update).exit_code == code


def test_a_server_command_without_its_extra_says_how_to_install_it(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> object:
        raise ModuleNotFoundError("No module named 'celery'", name="celery")

    monkeypatch.setattr(lazy_group, "import_module", missing)
    for command, extra in (("up", "embedded"), ("worker", "server")):
        result = run(command, "--anything", "else")
        assert result.exit_code == 1
        assert f"pip install 'stack-orchestrator[{extra}]'" in result.output
    assert run("--help").exit_code == 0


def test_client_commands_import_only_the_default_dependencies() -> None:
    program = """
import sys, orchestrator.cli.main as m, click
def visit(group):
    for name in group.list_commands(click.Context(group)):
        if not getattr(group, "entries", {}).get(name) or not group.entries[name].extra:
            command = group.get_command(click.Context(group), name)
            if isinstance(command, click.Group): visit(command)
visit(m.main)
server = set("celery flask sqlalchemy psycopg redis pydantic structlog cryptography yaql alembic".split())
print(sorted(server & {name.partition(".")[0] for name in sys.modules}))
"""
    completed = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert completed.stdout.strip() == "[]"


def complete(stub: Stub, keywords: str, keyword: str) -> list[str]:
    env = os.environ | {
        "ORCHESTRATOR_URL": stub.url, "COMP_WORDS": f"orchestrator {keywords}", "COMP_CWORD": keyword,
        "_ORCHESTRATOR_COMPLETE": "bash_complete",
    }  # fmt: skip
    command = Path(sys.executable).with_name("orchestrator")
    completed = subprocess.run([command], env=env, check=True, capture_output=True, text=True, timeout=60)
    return [line.split(",", 1)[1] for line in completed.stdout.splitlines()]


def test_the_shell_completes_commands_and_stack_names(stub: Stub) -> None:
    stub.add("shop")
    stub.add("shed")
    stub.add("other")
    assert complete(stub, "stack sh", "2") == ["show"]
    assert complete(stub, "stack show sh", "3") == ["shop", "shed"]
    assert "--wait" in complete(stub, "stack delete --w", "3")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_names_the_program(run: Run, shell: str) -> None:
    result = run("completion", shell)
    assert result.exit_code == 0
    assert f"_ORCHESTRATOR_COMPLETE={shell}_complete" in result.output


def test_an_option_of_commands_before_the_command_says_where_it_belongs(run: Run) -> None:
    result = run("--profile", "a", "stack", "list")
    assert result.exit_code == 1
    assert "--profile follows the command: orchestrator stack list --profile …" in result.output


def test_every_status_is_named_after_an_unknown_status(run: Run) -> None:
    assert "CHECK_COMPLETE" in run("stack", "list", "--status", "xyz").output


def test_a_disabled_export_names_the_setting(run: Run, stub: Stub) -> None:
    stub.add("shop", answers={})
    stub.refusal = (400, {"error": {"message": "Stack Abandon is not supported.", "type": "NotSupported"}})
    assert "ORCHESTRATOR_ENABLE_STACK_ABANDON=true" in run("stack", "export", "shop").output


def test_groups_of_parameters_are_listed_and_a_missing_description_is_not(run: Run, stub: Stub) -> None:
    groups = [{"label": "Network", "parameters": ["size", "net"]}]
    stub.validation = {"Description": "No description", "ParameterGroups": groups}
    shown = run("validate", "-t", "t.yaml").output
    assert "Network: size, net" in shown
    assert "No description" not in shown
