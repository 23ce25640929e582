"""Types, versions, functions and workers over HTTP (docs/internals/rest-api.md §10.2, §13)."""

# ruff: noqa: F811 - fixtures are imported
from __future__ import annotations

import datetime as dt
import re
import uuid
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson
import pytest
from sqlalchemy import delete

import orchestrator
from orchestrator.operations.maintenance.heartbeat import LISTED_SECONDS, Heartbeat
from orchestrator.security.tokens import create_token
from orchestrator.store.maintenance.workers import list_workers
from orchestrator.store.tables.workers import Worker
from tests.integration.api_world import Client, World, api, project, root, world  # noqa: F401 - fixtures


def test_types_are_listed_shown_and_made_into_templates(api: Client, project: str) -> None:
    types = f"{root(project)}/resource_types"
    assert api.get(types) == {"resource_types": ["Test::Plain"]}
    assert api.get(f"{types}?name=Other") == {"resource_types": []}
    assert api.get(f"{types}?with_description=true")["resource_types"][0]["resource_type"] == "Test::Plain"
    api.get(f"{types}?support_status=NONSENSE", 400)
    schema = api.get(f"{types}/Test::Plain")
    assert schema["resource_type"] == "Test::Plain"
    assert schema["attributes"]["open"] == {"description": "Anybody may know."}
    assert "HeatTemplateFormatVersion" in api.get(f"{types}/Test::Plain/template")
    assert "heat_template_version" in api.get(f"{types}/Test::Plain/template?template_type=hot")
    assert (
        api.message("GET", f"{types}/Test::Gone", 404) == "The Resource Type (Test::Gone) could not be found."
    )


TEMPLATE = """
heat_template_version: 2021-04-16
description: A pair of words
parameters:
  left: {type: string, description: The one on the left}
  count: {type: number, default: 2, constraints: [{range: {min: 1}}]}
resources:
  it: {type: Test::Plain}
outputs:
  both: {description: Both of them, value: 1}
"""
OPERATORS = """
resource_registry:
  Own::Pair: file://{folder}/pair.template
  Own::Alias: Test::Plain
  Own::Missing: file://{folder}/none.template
  Own::Server: OS::Nova::Server
"""


def test_the_operators_templates_are_types_like_any_other(world: World, project: str, tmp_path: Path) -> None:
    (tmp_path / "pair.template").write_text(TEMPLATE)
    (tmp_path / "own.yaml").write_text(OPERATORS.format(folder=tmp_path))
    client = world.client(environment_dir=tmp_path)
    types = f"{root(project)}/resource_types"
    assert client.get(types) == {"resource_types": ["Own::Pair", "Test::Plain"]}
    assert client.get(f"{types}?with_description=true&name=Own") == {
        "resource_types": [{"resource_type": "Own::Pair", "description": "A pair of words"}]
    }
    schema = client.get(f"{types}/Own::Pair")
    assert schema["properties"] == {
        "left": {
            "type": "string",
            "required": True,
            "update_allowed": True,
            "immutable": False,
            "description": "The one on the left",
        },
        "count": {
            "type": "number",
            "required": False,
            "update_allowed": True,
            "immutable": False,
            "constraints": [{"range": {"min": 1}}],
        },
    }
    assert schema["attributes"] == {
        "both": {"description": "Both of them"},
        "show": {"description": "Detailed information about resource.", "type": "map"},
    }
    made = client.get(f"{types}/Own::Pair/template?template_type=hot")
    assert made["resources"] == {
        "Pair": {
            "type": "Own::Pair",
            "properties": {"left": {"get_param": "left"}, "count": {"get_param": "count"}},
        }
    }


def test_an_alias_is_not_listed_and_shows_its_target(world: World, project: str, tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(OPERATORS.format(folder=tmp_path))
    client, types = world.client(environment_dir=tmp_path), f"{root(project)}/resource_types"
    schema = client.get(f"{types}/Own::Alias")
    assert (schema["resource_type"], set(schema["attributes"])) == ("Own::Alias", {"open", "shut", "show"})
    message = client.message("GET", f"{types}/Own::Server", 400)
    assert message.startswith("HEAT-E99001 Service nova is not available for resource type Own::Server")
    client.get(f"{types}/Own::Missing", 500)


def test_a_type_that_is_known_and_not_there_is_refused_as_such(api: Client, project: str) -> None:
    for path in ("", "/template"):
        message = api.message("GET", f"{root(project)}/resource_types/OS::Nova::Server{path}", 400)
        assert message.startswith("HEAT-E99001 Service nova is not available")


def test_a_template_of_no_known_kind_is_refused(api: Client, project: str) -> None:
    path = f"{root(project)}/resource_types/Test::Plain/template?template_type=tosca"
    assert api.message("GET", path, 400).startswith("Template type is not supported: ")


def test_versions_are_listed_with_their_aliases(api: Client, project: str) -> None:
    listed = api.get(f"{root(project)}/template_versions")["template_versions"]
    assert {"version": "heat_template_version.2013-05-23", "type": "hot", "aliases": []} in listed
    assert {
        "version": "heat_template_version.2016-10-14",
        "type": "hot",
        "aliases": ["heat_template_version.newton"],
    } in listed


def test_functions_are_those_of_the_version_or_its_alias(api: Client, project: str) -> None:
    versions = f"{root(project)}/template_versions"
    functions = api.get(f"{versions}/heat_template_version.2021-04-16/functions")["template_functions"]
    assert {"get_param", "get_attr", "str_replace"} <= {function["functions"] for function in functions}
    lines = {function["functions"]: function["description"] for function in functions}
    assert lines["get_file"] == "A function for including a file inline."
    assert all(line.startswith("A ") for line in lines.values()), "in Heat's words, all of them"
    assert api.get(f"{versions}/heat_template_version.wallaby/functions")["template_functions"] == functions
    for unknown in ("heat_template_version.1999-01-01", "nonsense", "Other.2021-04-16"):
        assert (
            api.message("GET", f"{versions}/{unknown}/functions", 404)
            == f"Template with version {unknown} not found"
        )


def test_validate_passes_the_body_on_and_knows_which_errors_may_be_ignored(
    api: Client, world: World, project: str
) -> None:
    validate = f"{root(project)}/validate"
    assert api.ask("POST", f"{validate}?ignore_errors=99001", 200, json={"a": 1}) == {"Description": "fine"}
    assert orjson.loads(world.neighbour.bodies[-1]) == {"a": 1}
    assert (
        api.message("POST", f"{validate}?ignore_errors=99001,5", 400)
        == "Invalid codes in ignore_errors : ['5']"
    )


def test_build_info(api: Client, project: str) -> None:
    assert api.get(f"{root(project)}/build_info") == {
        "api": {"revision": orchestrator.__version__},
        "engine": {"revision": orchestrator.__version__},
    }


@pytest.mark.parametrize(
    ("version", "name", "line"),
    [
        ("2014-10-16", "list_join", "A function for joining strings."),
        ("2015-10-15", "list_join", "A function for joining one or more lists of strings."),
        ("2016-04-08", "repeat", "A function for iterating over a list of items."),
        ("2016-10-14", "repeat", "A function for iterating over a list of items or a dict of keys."),
    ],
)
def test_an_extended_function_is_described_as_in_its_version(
    api: Client, project: str, version: str, name: str, line: str
) -> None:
    path = f"{root(project)}/template_versions/heat_template_version.{version}/functions"
    functions = {item["functions"]: item["description"] for item in api.get(path)["template_functions"]}
    assert functions[name] == line


def test_every_function_of_every_format_is_reported_with_heats_message(api: Client, project: str) -> None:
    versions = f"{root(project)}/template_versions"
    for form in api.get(versions)["template_versions"]:
        path = f"{versions}/{form['version']}/functions?with_condition_func=true"
        for item in api.get(path)["template_functions"]:
            assert item["description"].startswith("A "), item


def test_services_are_the_workers_that_report_and_those_that_fell_silent(
    api: Client, world: World, project: str
) -> None:
    services = f"{root(project)}/services"
    world.insert(
        Worker,
        worker("check1@here", silent=5),
        worker("check2@here", silent=100),
        worker("provider1@here", silent=12),
    )
    listed = api.get(services)["services"]
    assert [(item["host"], item["status"]) for item in listed] == [
        ("check1@here", "up"),
        ("check2@here", "down"),
        ("provider1@here", "up"),
    ]
    assert listed[0] | {"engine_id": "", "id": "", "created_at": "", "updated_at": ""} == {
        "id": "",
        "engine_id": "",
        "binary": "orchestrator-worker",
        "host": "check1@here",
        "hostname": "here",
        "topic": "check,observe",
        "report_interval": 20,
        "created_at": "",
        "updated_at": "",
        "deleted_at": None,
        "status": "up",
    }
    assert uuid.UUID(listed[0]["engine_id"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}", listed[0]["updated_at"])
    with world.database.engine.begin() as connection:
        connection.execute(delete(Worker).where(Worker.name != "check2@here"))
    assert api.message("GET", services, 503) == "All heat engines are down."


def test_services_are_listed_for_the_operator_only(world: World, project: str) -> None:
    token = create_token(world.database, project)
    requests = world.client(auth="token", base="").http.get(
        f"/v1/{quote(project)}/services", headers={"X-Auth-Token": token}
    )
    assert requests.status_code == 403
    assert requests.json["error"]["message"] == "You are not authorized to use service:index."


def test_a_worker_sends_heartbeats_signs_off_and_removes_killed_workers(world: World) -> None:
    world.insert(Worker, worker("killed@here", silent=2 * LISTED_SECONDS))
    reporting = Heartbeat(world.database, "check9@here", ["check", "bulk"])
    for _ in range(3):
        reporting.tick()
    (mine,) = [row for row in list_workers(world.database) if row.name == "check9@here"]
    assert (mine.is_up, mine.queues, mine.updated_at) == (True, "check,bulk", mine.created_at)
    assert "killed@here" not in {row.name for row in list_workers(world.database)}
    reporting.end()
    assert "check9@here" not in {row.name for row in list_workers(world.database)}


def worker(name: str, *, silent: int) -> dict[str, Any]:
    """Return the row of a worker without a heartbeat for `silent` seconds."""
    then = dt.datetime.now(dt.UTC) - dt.timedelta(seconds=silent)
    reported = {
        "uuid": uuid.uuid4(),
        "name": name,
        "hostname": name.partition("@")[2],
        "queues": "check,observe",
    }
    return {**reported, "report_interval": 20, "created_at": then, "updated_at": then}
