"""Credentials of agents and hidden values: in the open only for the agent of the server.

A stack has something of every credential. Each route that reads is requested by every other caller; no
answer contains a credential, so that a new route or type is covered without a change here.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import orjson
import pytest
from flask.testing import FlaskClient

from orchestrator.resources.ec2_signatures import signature_v2
from orchestrator.resources.registry import load_registry
from orchestrator.security.key_pairs import create_key_pair
from orchestrator.security.tokens import create_token
from tests.hostile.routes import quoted
from tests.scenarios.conftest import cloud, kept, postgres_url, world
from tests.scenarios.keystone.access_world import serving
from tests.scenarios.world import World, test_resource

__all__ = ["cloud", "kept", "postgres_url", "world"]  # fixtures

HIDDEN = "hidden-value-of-the-user"
PARAMETERS = {"password": {"type": "string", "hidden": True}}
SECRET = {"get_param": "password"}
STREAMS = {"events.stream", "events.stream_of_project"}  # they do not end; their content is that of events
CREDENTIALS = {"secret_access_key", "SecretAccessKey", "password", "token", "secret", "value"}
HOST = "127.0.0.1:8004"


def deployment(transport: str) -> dict[str, Any]:
    return {
        "type": "OS::Heat::SoftwareDeployment",
        "properties": {
            "config": {"get_resource": "config"},
            "server": {"get_resource": "machine"},
            "input_values": {"password": SECRET},
            "signal_transport": transport,
        },
    }


def policy(kind: str) -> dict[str, Any]:
    properties = {
        "auto_scaling_group_id": {"get_resource": "group"},
        "adjustment_type": "change_in_capacity",
        "scaling_adjustment": 1,
    }
    if kind == "OS::Heat::ScalingPolicy":
        return {"type": kind, "properties": properties}
    names = {"auto_scaling_group_id": "AutoScalingGroupName", "adjustment_type": "AdjustmentType"}
    names["scaling_adjustment"] = "ScalingAdjustment"
    changed = {names[name]: value for name, value in properties.items()}
    return {"type": kind, "properties": {**changed, "AdjustmentType": "ChangeInCapacity"}}


RESOURCES: dict[str, Any] = {
    "machine": {"type": "OS::Heat::DeployedServer", "metadata": {"word": SECRET, "rack": 7}},
    "polling": {
        "type": "OS::Heat::DeployedServer",
        "properties": {"software_config_transport": "POLL_SERVER_HEAT"},
    },
    "config": {"type": "OS::Heat::SoftwareConfig", "properties": {"config": SECRET, "group": "script"}},
    "cfn": deployment("CFN_SIGNAL"),
    "heat": deployment("HEAT_SIGNAL"),
    **{
        f"handle-{transport[:3]}": {
            "type": "OS::Heat::WaitConditionHandle",
            "properties": {"signal_transport": transport},
        }
        for transport in ("CFN_SIGNAL", "TOKEN_SIGNAL", "HEAT_SIGNAL")
    },
    "url": {"type": "AWS::CloudFormation::WaitConditionHandle"},
    "group": {
        "type": "OS::Heat::AutoScalingGroup",
        "properties": {"min_size": 1, "max_size": 2, "resource": test_resource(SECRET)},
    },
    "scale": policy("OS::Heat::ScalingPolicy"),
    "scale-aws": policy("AWS::AutoScaling::ScalingPolicy"),
    "user": {"type": "AWS::IAM::User"},
    "key": {"type": "AWS::IAM::AccessKey", "properties": {"UserName": {"get_resource": "user"}}},
    "random": {"type": "OS::Heat::RandomString"},
    "plain": {**test_resource(SECRET), "metadata": {"word": SECRET}},
}


# Attributes with the name of a credential whose values are none.
NO_CREDENTIALS = {
    "OS::Barbican::*": {"secret_ref", "secret_refs", "public_key"},  # addresses, which require a token
    "OS::Heat::ScalingPolicy": {"signal_url"},  # requires a token
    "OS::Heat::SwiftSignalHandle": {"token"},  # empty
    "OS::Heat::WaitConditionHandle": {"endpoint"},  # requires a token
    "OS::Keystone::User": {"password_expires_at"},
    "OS::Nova::KeyPair": {"public_key"},
    "OS::Nova::Server": {"console_urls"},  # live; Nova decides who may read them
    "OS::Swift::Container": {"WebsiteURL", "RootURL"},
    "AWS::S3::Bucket": {"WebsiteURL"},
}
NAMED_LIKE_CREDENTIALS = re.compile(
    r"(url|token|password|secret|key|curl|credential|signature|signal|collect|payload|endpoint)",
    re.IGNORECASE,
)


@pytest.fixture
def api(world: World) -> Iterator[FlaskClient]:
    """The API over the stack."""
    world.create("s", RESOURCES, parameters=PARAMETERS, environment={"parameters": {"password": HIDDEN}})
    world.deliver_all()
    with serving(world, auth="token") as client:
        yield client


def secret_texts(value: object, key: str = "") -> Iterator[str]:
    """Yield the credentials within a value: those under the name of a credential, and signatures of URLs."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from secret_texts(item, name)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from secret_texts(item, key)
    elif isinstance(value, str):
        if key in CREDENTIALS:
            yield value
        if value.startswith("{"):
            yield from secret_texts(orjson.loads(value))
        yield from parse_qs(urlsplit(value).query).get("Signature", [])


def credentials(world: World) -> set[str]:
    """Return all secrets of the installation, decrypted."""
    found = {HIDDEN}
    for row in world.rows("SELECT secret FROM access WHERE secret IS NOT NULL"):
        found.add(world.cipher.open(row.secret))
    for row in world.rows("SELECT sealed FROM software_agent"):
        opened = world.cipher.open(row.sealed)
        found |= {opened["secret"], opened["token"]}
    for row in world.rows("SELECT sealed FROM resource WHERE sealed IS NOT NULL"):
        opened = world.cipher.open(bytes(row.sealed))
        found.update(secret_texts([opened.get("attributes"), opened.get("data")]))
    return found


def places(world: World) -> dict[str, list[str]]:
    """Return the values of the variables in paths."""
    rows = world.rows("SELECT name, physical_id FROM resource WHERE physical_id IS NOT NULL")
    return {
        "project_id": ["p1"],
        "stack_name": ["s"],
        "stack_id": [str(world.stack_row("s").uuid)],
        "resource_name": [row.name for row in rows],
        "server_id": [row.physical_id for row in rows if row.name in ("machine", "polling")],
        "config_id": [str(row.uuid) for row in world.rows("SELECT uuid FROM software_config")],
        "deployment_id": [str(row.uuid) for row in world.rows("SELECT uuid FROM software_deployment")],
    }


def reads(api: FlaskClient, values: Mapping[str, list[str]]) -> Iterator[str]:
    """Yield the path of every route that reads, for each object."""
    for rule in api.application.url_map.iter_rules():
        if "project_id" not in rule.arguments or "GET" not in (rule.methods or ()):
            continue
        if rule.endpoint in STREAMS or rule.endpoint.startswith("lookup."):
            continue
        names = [""]
        for variable in sorted(rule.arguments):
            names = [f"{name}&{quote(value)}" for name in names for value in values.get(variable, ["1"])]
        for name in names:
            chosen = dict(zip(sorted(rule.arguments), name.split("&")[1:], strict=True))
            yield "/v1" + quoted(rule.rule, chosen)


def leaks(text: str, secrets: set[str]) -> list[str]:
    """Return the secrets that an answer contains."""

    def forms(secret: str) -> tuple[str, ...]:
        return secret, quote(secret, safe=""), orjson.dumps(secret)[1:-1].decode()

    return [secret for secret in secrets if any(form in text for form in forms(secret))]


def test_attributes_with_the_name_of_a_credential_are_secret() -> None:
    for name, resource_type in load_registry().items():
        none = NO_CREDENTIALS.get(name, NO_CREDENTIALS.get(f"{name.rpartition('::')[0]}::*", set()))
        open_ones = {
            attribute
            for attribute, declared in resource_type.attributes.items()
            if NAMED_LIKE_CREDENTIALS.search(attribute) and not declared.secret
        }
        assert open_ones <= none, name


@pytest.mark.parametrize("role", ["reader", "member", "admin"])
def test_no_answer_has_a_credential_or_a_hidden_value(world: World, api: FlaskClient, role: str) -> None:
    secrets, headers = credentials(world), {"X-Auth-Token": create_token(world.database, "p1", roles=[role])}
    assert len(secrets) > 12
    answered = 0
    for path in reads(api, places(world)):
        for query in ("", "?with_detail=true&nested_depth=5", "?with_attr=os_collect_config"):
            answer = api.get(path + query, headers=headers)
            found = leaks(answer.data.decode(errors="replace"), secrets)
            assert not found, (path + query, found)
            answered += answer.status_code == 200
    assert answered > 100


def test_users_see_the_metadata_of_a_server_with_its_secrets_masked(world: World, api: FlaskClient) -> None:
    headers = {"X-Auth-Token": create_token(world.database, "p1", roles=["reader"])}
    stack, server = f"/v1/p1/stacks/s/{world.stack_row('s').uuid}", world.resource("machine").physical_id
    shown = api.get(f"{stack}/resources/machine/metadata", headers=headers).json["metadata"]
    assert (shown["word"], shown["rack"]) == ("******", 7)
    assert shown["os-collect-config"]["cfn"]["secret_access_key"] == "******"
    listed = api.get(f"/v1/p1/software_deployments/metadata/{server}", headers=headers).json["metadata"]
    assert shown["deployments"] == listed
    assert {config["group"] for config in listed} == {"script"}
    assert {config["config"] for config in listed} == {"******"}
    inputs = {item["name"]: item["value"] for config in listed for item in config["inputs"]}
    assert {inputs[name] for name in ("password", "deploy_signal_id", "deploy_password")} == {"******"}


def test_a_published_config_masks_the_secrets_that_it_was_published_with(world: World) -> None:
    """Also after the resource has another secret, without a new publication."""
    resources = {
        "machine": RESOURCES["machine"],
        "config": {"type": "OS::Heat::SoftwareConfig", "properties": {"group": "script", "config": "x"}},
        "first": {
            "type": "OS::Heat::SoftwareDeployment",
            "properties": {
                "config": {"get_resource": "config"},
                "server": {"get_resource": "machine"},
                "input_values": {"password": SECRET, "greeting": "hello"},
                "signal_transport": "NO_SIGNAL",
                "actions": ["CREATE"],
            },
        },
    }
    later = "another-hidden-value"
    world.create("s", resources, parameters=PARAMETERS, environment={"parameters": {"password": HIDDEN}})
    world.deliver_all()
    with serving(world, auth="token") as api:
        headers = {"X-Auth-Token": create_token(world.database, "p1", roles=["reader"])}
        path = f"/v1/p1/software_deployments/metadata/{world.resource('machine').physical_id}"
        for _ in range(2):
            [config] = api.get(path, headers=headers).json["metadata"]
            inputs = {item["name"]: item["value"] for item in config["inputs"]}
            assert (inputs["password"], inputs["greeting"], inputs["deploy_action"]) == (
                "******",
                "hello",
                "CREATE",
            )
            world.update(
                "s", resources, parameters=PARAMETERS, environment={"parameters": {"password": later}}
            )
            world.deliver_all()


def test_a_secret_config_stays_secret_in_configs_that_another_stack_makes_of_it(world: World) -> None:
    config = {"type": "OS::Heat::SoftwareConfig", "properties": {"config": SECRET}}
    world.create(
        "owner", {"config": config}, parameters=PARAMETERS, environment={"parameters": {"password": HIDDEN}}
    )
    world.deliver_all()
    stored = world.resource("config").physical_id

    def deployed(config: object) -> dict[str, Any]:
        server = {"get_resource": "machine"}
        properties = {"config": config, "server": server, "signal_transport": "NO_SIGNAL"}
        return {"type": "OS::Heat::SoftwareDeployment", "properties": properties}

    parts = [{"config": stored}, {"config": "echo hello"}]
    resources = {
        "machine": {"type": "OS::Heat::DeployedServer"},
        "direct": deployed(stored),
        "parts": {"type": "OS::Heat::MultipartMime", "properties": {"parts": parts}},
        "mime": deployed({"get_resource": "parts"}),
    }
    for words in ("hello", "hello again"):
        parts[1]["config"] = f"echo {words}"
        (world.create if words == "hello" else world.update)("user", resources)
        world.deliver_all()
        assert world.stack_row("user").status == "COMPLETE"
        with serving(world, auth="token") as api:
            headers = {"X-Auth-Token": create_token(world.database, "p1", roles=["reader"])}
            machine = world.resource("machine").physical_id
            answers = [
                api.get(f"/v1/p1/software_{path}", headers=headers)
                for path in (
                    f"deployments/metadata/{machine}",
                    *(f"configs/{row.uuid}" for row in world.rows("SELECT uuid FROM software_config")),
                )
            ]
            assert len(answers) == 5  # the config, the parts, and what each deployment made of them
            assert not [answer.text for answer in answers if HIDDEN in answer.text]
            assert "echo" in answers[0].text or "******" in answers[0].text


def test_the_agent_reads_its_own_values_and_those_of_no_other_server(world: World, api: FlaskClient) -> None:
    rows = {name: world.resource(name) for name in ("machine", "polling")}
    opened = {name: world.cipher.open(bytes(row.sealed)) for name, row in rows.items()}
    token = opened["polling"]["attributes"]["os_collect_config"]["heat"]["password"]
    headers = {"X-Auth-Token": token}
    stack = f"/v1/p1/stacks/s/{world.stack_row('s').uuid}"
    own = api.get(f"{stack}/resources/polling/metadata", headers=headers)
    assert own.json["metadata"]["os-collect-config"]["heat"]["password"] == token
    assert api.get(f"{stack}/resources/machine/metadata", headers=headers).status_code == 403
    metadata = "/v1/p1/software_deployments/metadata"
    assert api.get(f"{metadata}/{rows['polling'].physical_id}", headers=headers).status_code == 200
    assert api.get(f"{metadata}/{rows['machine'].physical_id}", headers=headers).status_code == 403
    collector = opened["machine"]["attributes"]["os_collect_config"]["cfn"]
    answer = described(api, collector["access_key_id"], collector["secret_access_key"])
    assert HIDDEN in answer
    assert "deploy_signal_id" in answer
    assert "******" not in answer


def test_a_query_of_a_user_has_the_metadata_masked(world: World, api: FlaskClient) -> None:
    secrets = credentials(world)
    for role in ("reader", "member", "admin"):
        answer = described(api, *create_key_pair(world.database, world.cipher, "p1", roles=[role]))
        assert "deploy_signal_id" in answer
        assert not leaks(answer, secrets)


def described(api: FlaskClient, key: str, secret: str) -> str:
    """Return the metadata of the machine from a CloudFormation query."""
    params = {
        "Action": "DescribeStackResource",
        "StackName": "s",
        "LogicalResourceId": "machine",
        "AWSAccessKeyId": key,
        "SignatureVersion": "2",
        "ContentType": "JSON",
        "Timestamp": dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    params["Signature"] = signature_v2(secret, "GET", HOST, "/v1/", params)
    answer = api.get("/v1/", query_string=params, base_url=f"http://{HOST}")
    assert answer.status_code == 200, answer.text
    result = answer.json["DescribeStackResourceResponse"]["DescribeStackResourceResult"]
    return str(result["StackResourceDetail"]["Metadata"])
