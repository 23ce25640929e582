"""The stock `openstack` client: service information, and software configuration without a stack."""

from __future__ import annotations

import json
from pathlib import Path

import httpx

import orchestrator
from tests.clients.stock import Openstack

CONFIG = """\
inputs: [{name: who, default: world}]
outputs: [{name: result}]
options: {shell: sh}
"""
SERVER = "7b7b2c5a-5a38-4b51-a2a9-7b5fd0f1c5c1"
VERSION = "heat_template_version.2021-04-16"


def test_the_service_describes_itself(openstack: Openstack) -> None:
    built = {"api": {"revision": orchestrator.__version__}, "engine": {"revision": orchestrator.__version__}}
    assert openstack.json("orchestration build info") == built


def test_versions_and_their_functions_are_listed(openstack: Openstack) -> None:
    versions = openstack.json("orchestration template version list")
    assert {"Version": VERSION, "Type": "hot", "Aliases": ["heat_template_version.wallaby"]} in versions
    plain = openstack.json("orchestration template function list", VERSION)
    assert "get_attr" in {item["Functions"] for item in plain}
    additional = openstack.json("orchestration template function list", VERSION, "--with_conditions")
    assert {"and", "or", "not", "equals"} <= {item["Functions"] for item in additional}
    assert "not found" in openstack.refused("orchestration template function list", "heat_template_version.1")


def test_a_template_is_validated(openstack: Openstack, template: Path) -> None:
    output = openstack.json("orchestration template validate", "-t", template)
    assert output["Description"] == "Two of them"
    assert (output["Parameters"]["secret"]["NoEcho"], output["Parameters"]["value"]["Type"]) == (
        "true",
        "String",
    )
    options = ("--show-nested", "--ignore-errors", "99001", "--parameter", "value=x")
    nested = openstack.json("orchestration template validate", "-t", template, *options)
    assert nested["Description"] == "Two of them"
    template.write_text(template.read_text().replace("OS::Heat::TestResource", "OS::Heat::Nonsense"))
    printed = openstack.refused("orchestration template validate", "-t", template)
    assert "OS::Heat::Nonsense" in printed


def test_resource_types_are_listed_and_shown(openstack: Openstack) -> None:
    (result,) = openstack.json("orchestration resource type list", "--filter", "name=OS::Heat::Value")
    assert result == {"Resource Type": "OS::Heat::Value"}
    described = openstack.json("orchestration resource type list", "--long", "--filter", "name=OS::Heat::Val")
    assert described[0]["Description"]
    shown = openstack.json("orchestration resource type show", "OS::Heat::Value", "--long")
    assert shown["properties"]["value"]["required"] is True
    hot = openstack.json("orchestration resource type show", "OS::Heat::Value", "--template-type", "hot")
    assert hot["heat_template_version"] == "2016-10-14"
    cfn = openstack.json("orchestration resource type show", "OS::Heat::Value", "--template-type", "cfn")
    assert cfn["HeatTemplateFormatVersion"] == "2012-12-12"
    assert "Resource type not found: OS::X" in openstack.refused("orchestration resource type show", "OS::X")


def test_a_config_is_made_listed_shown_and_deleted(openstack: Openstack, tmp_path: Path) -> None:
    script, definition = tmp_path / "script.sh", tmp_path / "definition.yaml"
    script.write_text("echo hello $who\n")
    definition.write_text(CONFIG)
    files = ("--config-file", script, "--definition-file", definition)
    made = openstack.json("software config create", *files, "--group", "script", "greet")
    assert (made["name"], made["group"], made["config"]) == ("greet", "script", "echo hello $who\n")
    (listed,) = openstack.json("software config list", "--limit", "5")
    assert listed["id"] == made["id"]
    assert openstack.json("software config list", "--marker", made["id"]) == []
    shown = openstack.json("software config show", made["id"])
    assert shown["inputs"] == [{"name": "who", "type": "String", "default": "world"}]
    assert shown["options"] == {"shell": "sh"}
    assert openstack("software config show", "--config-only", made["id"]).startswith("echo hello $who\n")
    openstack("software config delete", made["id"])
    assert openstack.json("software config list") == []
    assert "Unable to delete 1 of the 1 software configs." in openstack.refused(
        "software config delete", made["id"]
    )
    assert "Configuration not found" in openstack.refused("software config show", made["id"])


def test_a_deployment_is_created_published_shown_and_deleted(openstack: Openstack, tmp_path: Path) -> None:
    definition = tmp_path / "definition.yaml"
    definition.write_text(CONFIG)
    config = openstack.json("software config create", "--definition-file", definition, "greet")["id"]
    said = ("--config", config, "--input-value", "who=you", "--signal-transport", "NO_SIGNAL", "--action")
    made = openstack.json("software deployment create", *said, "CREATE", "--server", SERVER, "on it")
    assert (made["action"], made["status"], made["server_id"]) == ("CREATE", "IN_PROGRESS", SERVER)
    (deployed,) = json.loads(openstack("software deployment metadata show", SERVER))
    assert deployed["name"] == "on it"
    assert {"name": "who", "type": "String", "default": "world", "value": "you"} in deployed["inputs"]
    (listed,) = openstack.json("software deployment list", "--server", SERVER, "--long")
    assert (listed["id"], listed["config_id"]) == (made["id"], made["config_id"])
    assert openstack.json("software deployment list", "--server", "another") == []
    assert openstack.json("software deployment show", made["id"])["server_id"] == SERVER
    assert openstack.json("software deployment show", "--long", made["id"])["status"] == "IN_PROGRESS"
    assert openstack("software deployment output show", made["id"], "result") == ""
    done = {"status": "COMPLETE", "output_values": {"result": "42", "deploy_stdout": "hello you"}}
    place = f"{openstack.endpoint}/software_deployments/{made['id']}"
    httpx.put(place, json=done).raise_for_status()  # as the agent on the server does
    assert "  result: 42\n" in openstack("software deployment output show", made["id"], "result")
    output = openstack("software deployment output show", "--all", "--long", made["id"])
    assert "  deploy_stdout: |\n    hello you\n" in output
    assert "does not exist" in openstack.refused("software deployment output show", made["id"], "nope")
    openstack("software deployment delete", made["id"])
    assert openstack.json("software deployment list") == []
    assert [item["id"] for item in openstack.json("software config list")] == [config]
    assert "Software Deployment not found" in openstack.refused("software deployment show", made["id"])
    assert "Unable to delete 1 of the 1 deployments." in openstack.refused(
        "software deployment delete", made["id"]
    )
    assert "Software configuration not found" in openstack.refused(
        "software deployment create", "--config", "nope", "--server", SERVER, "x"
    )
