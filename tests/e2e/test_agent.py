"""An agent on a machine, simulated over HTTP as os-collect-config works: it polls for its deployments, runs
them, and signals the results. It has no other connection to our processes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.e2e.running import Up, eventually

TEMPLATE: dict[str, Any] = yaml.safe_load((Path(__file__).parents[2] / "examples/software.yaml").read_text())
TEMPLATE["heat_template_version"] = str(TEMPLATE["heat_template_version"])  # no date


class Agent:
    """Runs each new config."""

    def __init__(self, api: httpx.Client, server_id: str, carry_out: Callable[[dict[str, Any]], Any]) -> None:
        self.api, self.server_id, self.carry_out = api, server_id, carry_out
        self.done: list[str] = []

    def poll(self) -> int:
        """Poll once; return how many configs were new."""
        body = self.api.get(f"/software_deployments/metadata/{self.server_id}").json()["metadata"]
        new = [config for config in body if config["id"] not in self.done]
        for config in new:
            inputs = {item["name"]: item["value"] for item in config["inputs"]}
            self.done.append(config["id"])
            self.signal(inputs, self.carry_out({**config, "given": inputs}))
        return len(new)

    def signal(self, inputs: dict[str, Any], details: Any) -> None:
        """Say how it went, the way the config says."""
        if inputs["deploy_signal_transport"] == "CFN_SIGNAL":
            assert inputs["deploy_signal_verb"] == "POST"
            answer = httpx.post(inputs["deploy_signal_id"], json=details, timeout=20)
        else:
            place = f"/stacks/{inputs['deploy_stack_id']}/resources/{inputs['deploy_resource_name']}/signal"
            address = f"{inputs['deploy_auth_url']}/{inputs['deploy_project_id']}{place}"
            headers = {"X-Auth-Token": inputs["deploy_password"]}
            answer = httpx.post(address, json=details, headers=headers, timeout=20)
        answer.raise_for_status()


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    made = Up(tmp_path_factory.mktemp("agent")).wait_ready()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def api(up: Up) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"{up.url}/v1/demo", timeout=30.0, follow_redirects=True) as client:
        yield client


def create(api: httpx.Client, name: str, template: dict[str, Any] = TEMPLATE, **parameters: Any) -> str:
    body = {"stack_name": name, "template": template, "parameters": parameters}
    answer = api.post("/stacks", json=body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["stack"]["links"][0]["href"])


def status(api: httpx.Client, place: str) -> str:
    shown: str = api.get(place).json()["stack"]["stack_status"]
    return shown


def machine(api: httpx.Client, place: str) -> str:
    def found() -> str:
        shown = api.get(f"{place}/resources/machine").json().get("resource", {})  # it may not be planned yet
        made = shown.get("resource_status") == "CREATE_COMPLETE"
        return str(shown["physical_resource_id"]) if made else ""

    return str(eventually(found))


@pytest.mark.parametrize("transport", ["CFN_SIGNAL", "HEAT_SIGNAL"])
def test_an_agent_executes_its_configs_in_sequence(api: httpx.Client, transport: str) -> None:
    place = create(api, f"agent-{transport[:3].lower()}", transport=transport)

    def shout(config: dict[str, Any]) -> dict[str, Any]:
        said = config["given"]["greeting"] + "!"
        return {"deploy_stdout": said, "deploy_stderr": "", "deploy_status_code": 0, "said": said}

    agent = Agent(api, machine(api, place), shout)
    eventually(lambda: agent.poll() or status(api, place) != "CREATE_IN_PROGRESS")
    eventually(lambda: agent.poll() or status(api, place) != "CREATE_IN_PROGRESS")
    eventually(lambda: status(api, place) == "CREATE_COMPLETE")
    assert len(agent.done) == 2
    assert api.get(f"{place}/outputs/said").json()["output"]["output_value"] == "hello!!"
    body = api.get("/software_deployments", params={"server_id": agent.server_id}).json()
    reported = [
        (software_deployment["action"], software_deployment["status"], software_deployment["status_reason"])
        for software_deployment in body["software_deployments"]
    ]
    assert reported == [("CREATE", "COMPLETE", "Outputs received")] * 2


def test_the_metadata_of_the_machine_say_the_same_and_where_to_poll(api: httpx.Client) -> None:
    place = create(api, "metadata")
    server_id = machine(api, place)
    polled = f"/software_deployments/metadata/{server_id}"
    eventually(lambda: api.get(polled).json()["metadata"])
    metadata = api.get(f"{place}/resources/machine/metadata").json()["metadata"]
    assert metadata["rack"] == 7
    assert metadata["deployments"] == api.get(polled).json()["metadata"]
    settings = metadata["os-collect-config"]
    assert settings["collectors"] == ["cfn", "local"]
    assert settings["cfn"]["path"] == "machine.Metadata"
    assert settings["cfn"]["stack_name"] == "metadata"
    assert settings["cfn"]["access_key_id"]
    shown = api.get(f"{place}/resources/machine").json()["resource"]
    assert settings["cfn"]["secret_access_key"] not in str(shown)


def test_a_config_that_fails_fails_the_stack(api: httpx.Client) -> None:
    place = create(api, "failing")
    failed = {"deploy_stderr": "no such command", "deploy_status_code": 127}
    agent = Agent(api, machine(api, place), lambda _: failed)
    eventually(agent.poll)
    eventually(lambda: status(api, place) == "CREATE_FAILED")
    assert api.get(place).json()["stack"]["stack_status_reason"] == (
        "Resource CREATE failed: Error: resources.first: Deployment to server failed: "
        "deploy_status_code : Deployment exited with non-zero status code: 127"
    )
    assert len(agent.done) == 1


def test_a_deployment_that_is_completed_by_request_completes_the_stack(api: httpx.Client) -> None:
    """As agents do that write the deployment's status themselves."""
    template = {**TEMPLATE, "resources": {**TEMPLATE["resources"]}, "outputs": {}}
    del template["resources"]["second"]
    place = create(api, "by-request", template)
    server_id = machine(api, place)
    listing = {"server_id": server_id}

    def found() -> Any:
        return api.get("/software_deployments", params=listing).json()["software_deployments"]

    [item] = eventually(found)
    answer = api.put(
        f"/software_deployments/{item['id']}", json={"status": "COMPLETE", "status_reason": "done"}
    )
    assert answer.status_code == 200
    eventually(lambda: status(api, place) == "CREATE_COMPLETE", 10)


def test_secrets_are_masked_in_listings_and_reach_the_server(api: httpx.Client) -> None:
    template = {
        "heat_template_version": "2021-04-16",
        "parameters": {"password": {"type": "string", "hidden": True}},
        "resources": {
            "config": {
                "type": "OS::Heat::SoftwareConfig",
                "properties": {
                    "config": {"get_param": "password"},
                    "options": {"word": {"get_param": "password"}},
                },
            },
            "dep": {
                "type": "OS::Heat::SoftwareDeployment",
                "properties": {
                    "config": {"get_resource": "config"},
                    "server": "some-machine",
                    "input_values": {"password": {"get_param": "password"}},
                },
            },
        },
    }
    create(api, "secrets", template, password="hush-hush")
    read = api.get
    polled = eventually(lambda: read("/software_deployments/metadata/some-machine").json()["metadata"])
    inputs = {item["name"]: item["value"] for item in polled[0]["inputs"]}
    assert (inputs["password"], polled[0]["config"]) == ("hush-hush", "hush-hush")
    made = api.get("/software_configs").json()["software_configs"]
    source = next(
        item for item in made if item["id"] != polled[0]["id"] and item["name"].startswith("secrets-")
    )
    listing = {"server_id": "some-machine"}
    shown = [
        api.get("/software_deployments", params=listing).text,
        api.get(f"/software_configs/{polled[0]['id']}").text,
        api.get(f"/software_configs/{source['id']}").text,
        api.get("/software_configs").text,
    ]
    assert not any("hush-hush" in text or inputs["deploy_signal_id"] in text for text in shown)


def test_without_authentication_an_access_key_is_a_projects_name(up: Up, api: httpx.Client) -> None:
    """As docs/cloudformation-api.md has it; boto3 asks the rest in test_cloudformation.py."""
    code = Path(__file__).parents[2] / "docs" / "cloudformation-api.md"
    example = code.read_text().split("```python\n", 1)[1].split("```", 1)[0]
    reported: list[Any] = []
    exec(example.replace("http://127.0.0.1:8004", up.url), {"print": reported.append})
    assert [(item["OutputKey"], item["OutputValue"]) for item in reported[0]] == [("Said", "blue")]
    assert status(api, "/stacks/shop") == "CREATE_COMPLETE"
