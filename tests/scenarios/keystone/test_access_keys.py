"""Access keys of users, with and without policies: signed requests to the CloudFormation API
(docs/internals/rest-api.md §14, A8, A10).
"""

# ruff: noqa: F811 - fixtures are imported
from __future__ import annotations

import datetime as dt
import hashlib
import json
from xml.etree import ElementTree

import pytest

from orchestrator.resources.ec2_signatures import signature_v2, signature_v4
from orchestrator.security.tokens import create_token
from tests.scenarios.keystone.access_world import api, code, out, served  # noqa: F401 - fixtures
from tests.scenarios.signals.test_wait_conditions import HANDLE, drain
from tests.scenarios.world import World, test_resource


class TestUsers:
    """Keys of a user, with and without policies."""

    @pytest.fixture
    def resources(self):
        return {
            "user": {"type": "AWS::IAM::User", "properties": {"Policies": [{"get_resource": "policy"}]}},
            "policy": {"type": "OS::Heat::AccessPolicy", "properties": {"AllowedResources": ["a", "h"]}},
            "key": {"type": "AWS::IAM::AccessKey", "properties": {"UserName": {"get_resource": "user"}}},
            "a": {**test_resource(), "metadata": {"config": [1, 2]}},
            "b": {**test_resource(), "metadata": {"config": "of others"}},
            "h": HANDLE,
        }

    @pytest.fixture
    def keys(self, world: World, resources):
        """Access key and secret."""
        return tuple(
            out(world, [{"get_resource": "key"}, {"get_attr": ["key", "SecretAccessKey"]}], resources)
        )

    def ask(self, api, keys, resource="a", *, verb="GET", version="2", **options):
        params = {
            "Action": "DescribeStackResource",
            "StackName": "s",
            "LogicalResourceId": resource,
            "ContentType": "JSON",
            **options,
        }
        host = "127.0.0.1:8004"
        headers = {}
        if version == "2":
            params |= {
                "AWSAccessKeyId": keys[0],
                "SignatureVersion": "2",
                "SignatureMethod": "HmacSHA256",
            }
            params["Signature"] = signature_v2(keys[1], verb, host, "/v1/", params)
        else:
            stamp = dt.datetime.now(dt.UTC).strftime("%Y%m%dT%H%M%SZ")
            scope = f"{stamp[:8]}/RegionOne/cloudformation/aws4_request"
            signed = {"host": host, "x-amz-date": stamp}
            signature = signature_v4(
                keys[1],
                verb,
                "/v1/",
                params,
                signed,
                scope=scope,
                stamp=stamp,
                body_hash=hashlib.sha256(b"").hexdigest(),
            )
            headers = {
                "X-Amz-Date": stamp,
                "Authorization": f"AWS4-HMAC-SHA256 Credential={keys[0]}/{scope}, "
                f"SignedHeaders=host;x-amz-date, Signature={signature}",
            }
        if verb == "POST":
            return api.post("/v1/", data=params, headers=headers, base_url=f"http://{host}")
        return api.get("/v1/", query_string=params, headers=headers, base_url=f"http://{host}")

    @pytest.mark.parametrize(("verb", "version"), [("GET", "2"), ("POST", "2"), ("GET", "4")])
    def test_a_server_reads_its_metadata(self, world: World, api, keys, verb, version):
        answer = self.ask(api, keys, verb=verb, version=version)
        assert answer.status_code == 200, answer.text
        result = answer.json["DescribeStackResourceResponse"]["DescribeStackResourceResult"]
        detail = result["StackResourceDetail"]
        assert json.loads(detail["Metadata"]) == {"config": [1, 2]}
        assert (detail["LogicalResourceId"], detail["StackName"]) == ("a", "s")
        assert detail["ResourceStatus"] == "CREATE_COMPLETE"
        assert detail["StackId"] == f"arn:openstack:heat::p1:stacks/s/{world.stack_row('s').uuid}"

    def test_the_answer_is_xml_unless_json_is_asked_for(self, api, keys):
        answer = self.ask(api, keys, ContentType="XML")
        result = ElementTree.fromstring(answer.data).find(
            "DescribeStackResourceResult/StackResourceDetail/Metadata"
        )
        assert result is not None
        assert json.loads(result.text or "") == {"config": [1, 2]}

    def test_only_permitted_contents_are_read(self, world: World, api, keys):
        assert self.ask(api, keys, "b").status_code == 403
        assert self.ask(api, keys, "nothing").status_code == 403
        assert self.ask(api, keys, StackName="another").status_code == 403
        assert self.ask(api, (keys[0], "0" * 32)).status_code == 403
        assert self.ask(api, (keys[0], "0" * 32), version="4").status_code == 403
        refusals = {"ListStacks": (403, "AccessDenied"), "x" * 9_000: (400, "InvalidAction")}
        for action, refusal in refusals.items():
            answer = self.ask(api, keys, Action=action)
            assert (answer.status_code, answer.json["ErrorResponse"]["Error"]["Code"]) == refusal
        assert self.ask(api, keys, "").status_code == 400

    def test_all_policies_of_a_user_must_allow_it(self, world: World, api, resources):
        additional = {"type": "OS::Heat::AccessPolicy", "properties": {"AllowedResources": ["a", "b"]}}
        resources["more"] = additional
        resources["user"]["properties"]["Policies"].append("more")
        resources["user"]["depends_on"] = "more"
        keys = out(world, [{"get_resource": "key"}, {"get_attr": ["key", "SecretAccessKey"]}], resources)
        requests = {name: self.ask(api, keys, name).status_code for name in ("a", "b", "h")}
        assert requests == {"a": 200, "b": 403, "h": 403}

    def test_a_policy_that_changes_counts_at_once(self, world: World, api, keys, resources):
        resources["policy"]["properties"]["AllowedResources"] = ["b"]
        world.update("s", resources)
        world.deliver_all()
        assert self.ask(api, keys).status_code == 403

    def test_a_user_without_policies_reads_everything_of_its_stack(self, world: World, api, resources):
        del resources["user"]["properties"], resources["policy"]
        keys = out(world, [{"get_resource": "key"}, {"get_attr": ["key", "SecretAccessKey"]}], resources)
        assert self.ask(api, keys, "b").status_code == 200
        assert self.ask(api, keys, "nothing").status_code == 400

    def test_a_suspended_or_deleted_user_reads_nothing(self, world: World, api, keys, resources):
        world.act("s", "suspend")
        drain(world)
        assert self.ask(api, keys).status_code == 403
        world.act("s", "resume")
        drain(world)
        assert self.ask(api, keys).status_code == 200
        world.update("s", {"a": resources["a"]})
        world.deliver_all()
        assert self.ask(api, keys).status_code == 403
        assert world.rows("SELECT 1 FROM access") == []

    def test_a_request_of_long_ago_is_refused(self, world: World, api, keys, monkeypatch):
        import orchestrator.security.signatures as checked

        monkeypatch.setattr(checked, "SKEW_SECONDS", -1)
        answer = self.ask(api, keys, version="4")
        assert (answer.status_code, answer.json["ErrorResponse"]["Error"]["Code"]) == (400, "RequestExpired")

    def test_an_unknown_key_fails_with_heats_message(self, world: World):
        key = {"type": "AWS::IAM::AccessKey", "properties": {"UserName": "nobody"}}
        uuid = world.create("s", {"key": key})
        world.deliver_all()
        assert (
            world.event_reasons(uuid, "key")[-1]
            == "CREATE_FAILED NotFound: resources.key: could not find user nobody"
        )

    @pytest.mark.parametrize(
        ("changed", "said"),
        [
            ({"policy": ["zz"]}, "AccessPolicy resource zz not in stack"),
            ({"user": ["zz"]}, "The Referenced Attribute (user Policies) is incorrect."),
            ({"user": ["a"]}, "The Referenced Attribute (user Policies) is incorrect."),
        ],
    )
    def test_names_that_are_not_there_are_refused_before_anything_is_made(
        self, world: World, api, resources, changed, said
    ):
        if "policy" in changed:
            resources["policy"]["properties"]["AllowedResources"] = changed["policy"]
        else:
            resources["user"]["properties"]["Policies"] = changed["user"]
        headers = {"X-Auth-Token": create_token(world.database, "p1")}
        template = {"heat_template_version": "2021-04-16", "resources": resources}
        body = {"stack_name": "s", "template": template}
        answer = api.post("/v1/p1/stacks", json=body, headers=headers)
        assert answer.status_code == 400
        assert said in answer.json["error"]["message"]


def test_the_version_alone_is_still_not_found(world: World):
    api = served(world)
    for path in ("/v1", "/v1/", "/v1/.query", "/v1/?x=1", "/v1/.query?Action=DescribeStackResource"):
        assert api.get(path).status_code == 404
    assert api.get("/v1/?Action=DescribeStackResource").status_code == 400
    assert code(api.post("/v1/", data={"Action": "x" * 5_000_000})) == (400, "RequestLimitExceeded")
