"""A client of CloudFormation's query API against `orchestrator up`, and templates."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from click.testing import CliRunner

from orchestrator.cli.main import main
from tests.e2e.running import Up, free_port

Template = dict[str, Any]
VERSION = {"AWSTemplateFormatVersion": "2010-09-09"}
CFN_PORT = free_port()
WAIT = {"Delay": 0.2, "MaxAttempts": 300}


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    env = {
        "ORCHESTRATOR_AUTH": "token",
        "ORCHESTRATOR_CFN_PORT": str(CFN_PORT),
        "ORCHESTRATOR_TEMPLATE_FETCH_ALLOW_PRIVATE": "true",  # the site below is on this machine
    }
    made = Up(tmp_path_factory.mktemp("cfn"), env=env).wait_ready()
    yield made
    made.stop()


def key_pair(up: Up, project: str, *options: str) -> dict[str, str]:
    """Make a key pair as operators do, in this process: that is sooner."""
    command = ("key-pair", "create", "--project", project, "--data-dir", str(up.data_dir), *options)
    done = CliRunner().invoke(main, command, catch_exceptions=False)
    lines = (line.removeprefix("export ").split("=", 1) for line in done.stdout.splitlines())
    return {name.lower(): value for name, value in lines}


def client(up: Up, keys: dict[str, str], path: str = "/v1", port: int | None = None) -> Any:
    retries = {"total_max_attempts": 1}
    return boto3.client(
        "cloudformation",
        endpoint_url=f"http://127.0.0.1:{port or up.port}{path}",
        region_name="RegionOne",
        config=Config(retries=retries),  # type: ignore[arg-type]
        **keys,
    )


@pytest.fixture(scope="module")
def cfn(up: Up) -> Any:
    return client(up, key_pair(up, "shop"))


def body(resources: Template, **sections: Any) -> str:
    return json.dumps({**VERSION, "Resources": resources, **sections})


def thing(value: Any = "v", **properties: Any) -> Template:
    return {"Type": "OS::Heat::TestResource", "Properties": {"value": value, **properties}}


def wait(cfn: Any, for_: str, name: str) -> None:
    cfn.get_waiter(for_).wait(StackName=name, WaiterConfig=WAIT)


def described(cfn: Any, name: str) -> Any:
    [stack] = cfn.describe_stacks(StackName=name)["Stacks"]
    return stack


def refusal(call: Any, **arguments: Any) -> tuple[int, str, str]:
    with pytest.raises(ClientError) as raised:
        call(**arguments)
    answer: Any = raised.value.response
    return answer["ResponseMetadata"]["HTTPStatusCode"], answer["Error"]["Code"], answer["Error"]["Message"]


PARAMETERS = {
    "Colour": {"Type": "String", "Default": "red", "Description": "Of the thing."},
    "Secret": {"Type": "String", "NoEcho": "true", "Default": "hush"},
}


def coloured(extra: Template | None = None) -> str:
    return body(
        {"Thing": thing({"Ref": "Colour"}), **(extra or {})},
        Description="A thing",
        Parameters=PARAMETERS,
        Outputs={"Said": {"Description": "What it is", "Value": {"Fn::GetAtt": ["Thing", "output"]}}},
    )
