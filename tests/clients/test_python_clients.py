"""Python clients: the API of python-heatclient, with and without a session, and openstacksdk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.clients.stock import Openstack

OUTPUT = {"output_key": "it", "description": "What is stored", "output_value": "second"}


def steps(openstack: Openstack, name: str, **more: Any) -> dict[str, Any]:
    """Run a module of `inside`; return its results."""
    answer = openstack.driver.run(name, {"endpoint": openstack.endpoint, **more})
    assert answer.status == 0, answer.err
    told: dict[str, Any] = answer.result
    return told


@pytest.mark.parametrize("legacy", [False, True])
def test_heatclient_finds_everything_as_it_knows_it(
    openstack: Openstack, template: Path, legacy: bool
) -> None:
    told = steps(openstack, "heatclient_steps", template=str(template), legacy=legacy)
    assert "stack_status" not in told["preview"]
    assert told["identifier"]
    assert (told["by id"], told["gone"]) == ("one", "one")
    assert (told["first page"], told["filtered"], told["tagged"]) == (["one"], [], ["one"])
    assert (told["outputs"], told["output"]) == ([OUTPUT], {"output": OUTPUT})
    assert "output_value" not in told["output list"]["outputs"][0]
    assert told["environment"] == {"value": "second"}
    assert (told["resources"], told["resource"]) == (["first", "second"], {"output": "second"})
    assert (told["metadata"], told["events"]) == ({"shelf": "top"}, ["second"])
    assert told["types"] == ["OS::Heat::Value"]
    assert told["generated"]["Value"]["type"] == "OS::Heat::Value"
    assert told["missing"] == [404, "ERROR: The Stack (one) could not be found."]
    assert told["conflict"] == [409, "ERROR: The Stack (one) already exists."]
    assert told["refused"][0] == 400
    assert told["refused"][1].startswith("ERROR: Invalid stack name 1 2 must contain only alphanumeric")


def test_the_sdk_finds_everything_as_it_knows_it(
    openstack: Openstack, template: Path, tmp_path: Path
) -> None:
    environment = tmp_path / "environment.yaml"
    environment.write_text("parameters: {value: from the environment}\n")
    told = steps(openstack, "sdk_steps", template=str(template), environment=str(environment))
    assert (told["preview"]["id"], told["preview"]["name"]) == ("None", "one")
    assert (told["created"]["status"], told["created"]["timeout_mins"]) == ("CREATE_COMPLETE", 10)
    assert told["created"]["outputs"] == [{**OUTPUT, "output_value": "first"}]
    assert (told["listed"], told["updated"]["outputs"]) == (["one"], [OUTPUT])
    assert (told["template"]["description"], told["exported"]) == ("Two of them", "one")
    assert (told["environment"]["parameters"], told["files"]) == ({"value": "second"}, {})
    assert told["resources"] == [
        ["first", "CREATE_COMPLETE", "OS::Heat::RandomString", True],
        ["second", "UPDATE_COMPLETE", "OS::Heat::TestResource", True],
    ]
    assert told["events"][0] == ["one", "CHECK_COMPLETE"]
    assert told["validated"]["secret"]["NoEcho"] == "true"
    assert (told["deployment"]["status"], told["deployment"]["status_reason"]) == ("COMPLETE", "done")
    assert (told["deployments"], told["configs"], told["found"]) == ([True], [], None)
    assert "The Stack (one) could not be found." in told["missing"]
    # it sends a merged environment, not a list of files
    assert told["cloud made"] == ["CREATE_COMPLETE", "given"]
    assert told["cloud updated"] == ["UPDATE_COMPLETE", "else", True]
    assert (told["cloud found"], told["cloud deleted"], told["cloud missing"]) == (
        ["two"],
        [True, None],
        False,
    )
