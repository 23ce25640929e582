"""Python clients: the API of python-heatclient, with and without a session, and openstacksdk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.clients.stock import Openstack

OUTPUT = {"output_key": "it", "description": "What is stored", "output_value": "second"}


def steps(openstack: Openstack, name: str, **options: Any) -> dict[str, Any]:
    """Run a module of `inside`; return its results."""
    answer = openstack.driver.run(name, {"endpoint": openstack.endpoint, **options})
    assert answer.status == 0, answer.err
    reported: dict[str, Any] = answer.result
    return reported


@pytest.mark.parametrize("legacy", [False, True])
def test_heatclient_finds_everything_as_it_knows_it(
    openstack: Openstack, template: Path, legacy: bool
) -> None:
    reported = steps(openstack, "heatclient_steps", template=str(template), legacy=legacy)
    assert "stack_status" not in reported["preview"]
    assert reported["identifier"]
    assert (reported["by id"], reported["gone"]) == ("one", "one")
    assert (reported["first page"], reported["filtered"], reported["tagged"]) == (["one"], [], ["one"])
    assert (reported["outputs"], reported["output"]) == ([OUTPUT], {"output": OUTPUT})
    assert "output_value" not in reported["output list"]["outputs"][0]
    assert reported["environment"] == {"value": "second"}
    assert (reported["resources"], reported["resource"]) == (["first", "second"], {"output": "second"})
    assert (reported["metadata"], reported["events"]) == ({"shelf": "top"}, ["second"])
    assert reported["types"] == ["OS::Heat::Value"]
    assert reported["generated"]["Value"]["type"] == "OS::Heat::Value"
    assert reported["missing"] == [404, "ERROR: The Stack (one) could not be found."]
    assert reported["conflict"] == [409, "ERROR: The Stack (one) already exists."]
    assert reported["refused"][0] == 400
    assert reported["refused"][1].startswith("ERROR: Invalid stack name 1 2 must contain only alphanumeric")


def test_the_sdk_finds_everything_as_it_knows_it(
    openstack: Openstack, template: Path, tmp_path: Path
) -> None:
    environment = tmp_path / "environment.yaml"
    environment.write_text("parameters: {value: from the environment}\n")
    reported = steps(openstack, "sdk_steps", template=str(template), environment=str(environment))
    assert (reported["preview"]["id"], reported["preview"]["name"]) == ("None", "one")
    assert (reported["created"]["status"], reported["created"]["timeout_mins"]) == ("CREATE_COMPLETE", 10)
    assert reported["created"]["outputs"] == [{**OUTPUT, "output_value": "first"}]
    assert (reported["listed"], reported["updated"]["outputs"]) == (["one"], [OUTPUT])
    assert (reported["template"]["description"], reported["exported"]) == ("Two of them", "one")
    assert (reported["environment"]["parameters"], reported["files"]) == ({"value": "second"}, {})
    assert reported["resources"] == [
        ["first", "CREATE_COMPLETE", "OS::Heat::RandomString", True],
        ["second", "UPDATE_COMPLETE", "OS::Heat::TestResource", True],
    ]
    assert reported["events"][0] == ["one", "CHECK_COMPLETE"]
    assert reported["validated"]["secret"]["NoEcho"] == "true"
    assert (reported["deployment"]["status"], reported["deployment"]["status_reason"]) == ("COMPLETE", "done")
    assert (reported["deployments"], reported["configs"], reported["found"]) == ([True], [], None)
    assert "The Stack (one) could not be found." in reported["missing"]
    # it sends a merged environment, not a list of files
    assert reported["cloud made"] == ["CREATE_COMPLETE", "given"]
    assert reported["cloud updated"] == ["UPDATE_COMPLETE", "else", True]
    assert (reported["cloud found"], reported["cloud deleted"], reported["cloud missing"]) == (
        ["two"],
        [True, None],
        False,
    )
