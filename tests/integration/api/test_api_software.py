"""Software configs and deployments over HTTP: bodies, statuses and refusals as Heat gives them."""

# ruff: noqa: F811 - fixtures are imported
from __future__ import annotations

import uuid
from typing import Any

import pytest

from tests.integration.api_world import Client, World, api, project, root, world  # noqa: F401 - fixtures

INPUTS = [
    {"name": "foo"},
    {"name": "size", "type": "Number", "default": "3", "replace_on_change": True, "description": "How much"},
]
OUTPUTS = [{"name": "result"}, {"name": "complaint", "error_output": True}]
NOBODY = str(uuid.UUID(int=7))


def config(api: Client, project: str, **options: Any) -> dict[str, Any]:
    body = {"name": "one", "group": "script", "config": "echo", **options}
    made = api.ask("POST", f"{root(project)}/software_configs", 200, json=body)
    return dict(made["software_config"])


def deployment(api: Client, project: str, **options: Any) -> dict[str, Any]:
    body = {"server_id": "machine", **options}
    if "config_id" not in body:
        body["config_id"] = config(api, project)["id"]
    made = api.ask("POST", f"{root(project)}/software_deployments", 200, json=body)
    return dict(made["software_deployment"])


class TestConfigs:
    def test_planned_resources_are_shown_completely(self, api: Client, project: str):
        made = config(api, project, inputs=INPUTS, outputs=OUTPUTS, options={"a": [1]})
        assert set(made) == {
            "id", "name", "group", "creation_time", "config", "inputs", "outputs", "options",
        }  # fmt: skip
        assert made["inputs"] == [
            {"name": "foo", "type": "String"},
            {
                "name": "size",
                "type": "Number",
                "default": 3,
                "replace_on_change": True,
                "description": "How much",
            },
        ]
        assert made["outputs"] == [
            {"name": "result", "type": "String", "error_output": False},
            {"name": "complaint", "type": "String", "error_output": True},
        ]
        assert made["options"] == {"a": [1]}
        assert api.get(f"{root(project)}/software_configs/{made['id']}") == {"software_config": made}

    def test_omitted_fields_are_empty(self, api: Client, project: str):
        made = api.ask("POST", f"{root(project)}/software_configs", 200, json={})["software_config"]
        assert (made["name"], made["group"], made["config"]) == (None, None, None)
        assert (made["inputs"], made["outputs"], made["options"]) == ([], [], {})

    def test_the_list_is_newest_first_and_comes_in_pages(self, api: Client, project: str):
        ids = [config(api, project, name=f"c{number}")["id"] for number in range(3)]
        listing = f"{root(project)}/software_configs"
        body = api.get(listing)["software_configs"]
        assert [item["id"] for item in body] == ids[::-1]
        assert set(body[0]) == {"id", "name", "group", "creation_time"}
        first = api.get(f"{listing}?limit=2")["software_configs"]
        assert [item["name"] for item in first] == ["c2", "c1"]
        rest = api.get(f"{listing}?limit=2&marker={first[-1]['id']}")["software_configs"]
        assert [item["name"] for item in rest] == ["c0"]
        assert api.message("GET", f"{listing}?limit=x", 400) == "Only integer is acceptable by 'limit'."
        assert api.get(f"{listing}?global_tenant=false")["software_configs"] == body
        api.ask("GET", f"{listing}?global_tenant=true", 403)

    def test_a_deleted_resource_does_not_exist(self, api: Client, project: str):
        place = f"{root(project)}/software_configs/{config(api, project)['id']}"
        api.ask("DELETE", place, 204)
        gone = f"Software config with id {place.rpartition('/')[2]} not found"
        assert api.message("GET", place, 404) == gone
        assert api.message("DELETE", place, 404) == gone
        assert "nonsense" in api.message("GET", f"{root(project)}/software_configs/nonsense", 404)

    def test_a_deployed_resource_stays(self, api: Client, project: str):
        made = deployment(api, project)
        place = f"{root(project)}/software_configs/{made['config_id']}"
        expected = f"Software config with id {made['config_id']} can not be deleted as it is referenced."
        assert api.message("DELETE", place, 409) == expected
        api.ask("DELETE", f"{root(project)}/software_deployments/{made['id']}", 204)
        api.ask("DELETE", place, 204)

    def test_projects_do_not_see_each_others_stacks(self, api: Client, world: World, project: str):
        made, other = config(api, project), world.project()
        api.ask("GET", f"{root(other)}/software_configs/{made['id']}", 404)
        api.ask("DELETE", f"{root(other)}/software_configs/{made['id']}", 404)
        assert api.get(f"{root(other)}/software_configs")["software_configs"] == []
        body = {"config_id": made["id"], "server_id": "x"}
        reported = api.message("POST", f"{root(other)}/software_deployments", 400, json=body)
        assert reported == f"Data supplied was not valid: Config with id {made['id']} not found"

    @pytest.mark.parametrize(
        ("body", "kind", "messages"),
        [
            ({"inputs": {"a": 1}}, "TypeError", ["Software Config I/O Schema must be in a list"]),
            ({"outputs": ["a"]}, "TypeError", ["Software Config I/O Schema must be a dict"]),
            (
                {"name": 5, "inputs": [{"type": "Text"}], "outputs": [{"name": "a", "sort": 1}]},
                "ValueError",
                [
                    "'name' must be a string.",
                    'Property error: inputs[0].type: "Text" is not an allowed value '
                    "(String, Number, CommaDelimitedList, Json, Boolean)",
                    "Property error: inputs[0]: Property name not assigned",
                    "Property error: outputs[0]: Unknown Property sort",
                ],
            ),
        ],
    )
    def test_every_fault_is_reported_at_once(
        self, api: Client, project: str, body: Any, kind: str, messages: list[str]
    ):
        answer = api.ask("POST", f"{root(project)}/software_configs", 400, json=body)["error"]
        assert answer["type"] == kind
        reported = sorted(error["message"] for error in answer["errors"])
        for message in messages:
            assert any(message[:40] in error for error in reported), (message, reported)
        assert len(reported) == len(messages)
        assert api.get(f"{root(project)}/software_configs")["software_configs"] == []

    @pytest.mark.parametrize(
        "data", [b"", b"[1]", b"{", b'{"name": "a\\u0000b"}', b'{"config": ' + b"[" * 500]
    )
    def test_json_that_is_not_an_object_is_refused(self, api: Client, project: str, data: bytes):
        api.message(
            "POST", f"{root(project)}/software_configs", 400, data=data, content_type="application/json"
        )

    def test_no_more_than_the_quota(self, world: World, project: str):
        api = world.client(quotas={"software_configs": 1, "software_deployments": 0})
        made = config(api, project)
        reported = api.message("POST", f"{root(project)}/software_configs", 400, json={"name": "two"})
        assert reported == (
            "Request limit exceeded: You have reached the maximum software configs per tenant, 1. "
            "Please delete some configs."
        )
        body = {"config_id": made["id"], "server_id": "x"}
        reported = api.message("POST", f"{root(project)}/software_deployments", 400, json=body)
        assert "maximum software deployments per tenant, 0" in reported

    def test_large_configs_of_a_project_have_a_limit_on_bytes(self, world: World, project: str):
        api = world.client(quotas={"large_value_bytes": 200_000})
        large = {"config": "x" * 100_000}
        config(api, project, **large)
        reported = api.message("POST", f"{root(project)}/software_configs", 400, json=large)
        assert reported == (
            "Request limit exceeded: the large software configs of the project have more than 200000 bytes."
        )
        assert len(api.get(f"{root(project)}/software_configs")["software_configs"]) == 1
        config(api, project)  # small configs are limited by number

    def test_nothing_of_it_is_stored_in_the_open(self, api: Client, world: World, project: str):
        deployment(
            api,
            project,
            config_id=config(api, project, config="pass-word")["id"],
            input_values={"a": "concealed"},
        )
        with world.database.connect() as db:
            for table in ("software_config", "software_deployment"):
                rows = db.execute(f"SELECT t::text, convert_from(t.sealed, 'UTF8') FROM {table} t").fetchall()
                assert rows
                assert not any("pass-word" in text or "concealed" in text for row in rows for text in row)


class TestDeployments:
    def test_planned_resources_are_shown(self, api: Client, project: str):
        made = deployment(api, project)
        assert made == {
            "id": made["id"],
            "server_id": "machine",
            "config_id": made["config_id"],
            "input_values": {},
            "output_values": None,
            "action": None,
            "status": None,
            "status_reason": None,
            "creation_time": made["creation_time"],
        }
        assert api.get(f"{root(project)}/software_deployments/{made['id']}") == {"software_deployment": made}

    def test_given_values_are_stored(self, api: Client, project: str):
        supplied = {
            "input_values": {"a": [1]},
            "action": "ACTION0",
            "status": "IN_PROGRESS",
            "status_reason": "because",
            "stack_user_project_id": "p" * 64,
        }
        made = deployment(api, project, **supplied)
        del supplied["stack_user_project_id"]
        assert {name: made[name] for name in supplied} == supplied

    def test_the_list_can_be_filtered_by_server(self, api: Client, project: str):
        item, other = deployment(api, project), deployment(api, project, server_id="other")
        listing = f"{root(project)}/software_deployments"
        assert api.get(listing)["software_deployments"] == [item, other]
        assert api.get(f"{listing}?server_id=other")["software_deployments"] == [other]
        assert api.get(f"{listing}?server_id=none")["software_deployments"] == []

    def test_an_update_keeps_null_values(self, api: Client, project: str):
        made = deployment(api, project, action="A", input_values={"a": 1})
        place = f"{root(project)}/software_deployments/{made['id']}"
        body = {"status": "COMPLETE", "action": None, "output_values": {"deploy_stdout": "fine"}}
        changed = api.ask("PUT", place, 200, json=body)["software_deployment"]
        assert changed == made | {
            "status": "COMPLETE",
            "output_values": {"deploy_stdout": "fine"},
            "updated_time": changed["updated_time"],
        }

    def test_another_config_reaches_the_machine(self, api: Client, project: str):
        made = deployment(api, project)
        machine = f"{root(project)}/software_deployments/metadata/machine"
        assert [item["config"] for item in api.get(machine)["metadata"]] == ["echo"]
        other = config(api, project, name="two", config="other")
        place = f"{root(project)}/software_deployments/{made['id']}"
        api.ask("PUT", place, 200, json={"config_id": other["id"]})
        assert api.get(machine) == {"metadata": [other]}
        api.ask("DELETE", place, 204)
        assert api.get(machine) == {"metadata": []}
        reported = f"Deployment with id {made['id']} not found"
        assert api.message("GET", place, 404) == reported
        assert api.message("PUT", place, 404, json={}) == reported
        assert api.message("DELETE", place, 404) == reported

    def test_a_machine_reads_its_configs_by_name(self, api: Client, project: str):
        for name in ("b", "a", "c"):
            deployment(api, project, config_id=config(api, project, name=name)["id"])
        body = api.get(f"{root(project)}/software_deployments/metadata/machine")["metadata"]
        assert [item["name"] for item in body] == ["a", "b", "c"]
        assert set(body[0]) == {
            "id", "name", "group", "creation_time", "config", "inputs", "outputs", "options",
        }  # fmt: skip

    @pytest.mark.parametrize(
        ("body", "message"),
        [
            ({"server_id": "x"}, "A software deployment needs a 'config_id'."),
            ({"config_id": NOBODY}, "A software deployment needs a 'server_id'."),
            (
                {"config_id": NOBODY, "server_id": "x"},
                f"Data supplied was not valid: Config with id {NOBODY} not found",
            ),
            (
                {"config_id": NOBODY, "server_id": "x", "stack_user_project_id": "p" * 65},
                'Data supplied was not valid: "stack_user_project_id" should be no more than 64 characters',
            ),
            (
                {"config_id": 5, "server_id": [], "input_values": "a"},
                "'server_id' must be a string. 'config_id' must be a string. 'input_values' must be a map.",
            ),
        ],
    )
    def test_impossible_requests_are_refused(self, api: Client, project: str, body: Any, message: str):
        assert api.message("POST", f"{root(project)}/software_deployments", 400, json=body) == message
        assert api.get(f"{root(project)}/software_deployments")["software_deployments"] == []

    def test_projects_do_not_see_each_others_stacks(self, api: Client, world: World, project: str):
        made, other = deployment(api, project), world.project()
        place = f"{root(other)}/software_deployments"
        for method, body in (("GET", None), ("PUT", {"status": "COMPLETE"}), ("DELETE", None)):
            api.ask(method, f"{place}/{made['id']}", 404, json=body)
        assert api.get(place)["software_deployments"] == []
        assert api.get(f"{place}/metadata/machine") == {"metadata": []}
        assert api.get(f"{root(project)}/software_deployments/{made['id']}")["software_deployment"] == made
