"""Types, versions and functions over HTTP (spec/rest-api.md §10.2, §13)."""

# ruff: noqa: F811 - fixtures are imported
from __future__ import annotations

from api_world import Client, World, api, project, root, world  # noqa: F401 - fixtures


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
    assert all(function["description"] for function in functions)
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
    assert api.ask("POST", f"{validate}?ignore_errors=99001", 200, data=b'{"a": 1}') == {
        "Description": "fine"
    }
    assert world.neighbour.bodies[-1] == b'{"a": 1}'
    assert (
        api.message("POST", f"{validate}?ignore_errors=99001,5", 400)
        == "Invalid codes in ignore_errors : ['5']"
    )


def test_build_info(api: Client, project: str) -> None:
    assert api.get(f"{root(project)}/build_info") == {
        "api": {"revision": "unknown"},
        "engine": {"revision": "unknown"},
    }
