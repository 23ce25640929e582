"""Signed URLs, tokens and keys that a stack's resources give, over HTTP (docs/internals/rest-api.md §14, A8,
A10).
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from urllib.parse import parse_qs, quote, urlencode, urlsplit, urlunsplit
from xml.etree import ElementTree

import pytest
from flask.testing import FlaskClient
from sqlalchemy import text

from api.app import operations
from api.dependencies import Dependencies
from api.routes import assemble
from orchestrator.config import Settings
from orchestrator.operations.maintenance.rotate_keys import rotate_keys
from orchestrator.resources.ec2_signatures import signature_v2, signature_v4
from orchestrator.security.encryption import Cipher, new_key
from orchestrator.security.tokens import create_token
from tests.scenarios.signals.test_wait_conditions import AWS_HANDLE, HANDLE, aws_condition, condition, drain
from tests.scenarios.world import World, test_resource

SAID = {"Status": "SUCCESS", "Reason": "r", "Data": "d", "UniqueId": "u"}


def served(world: World, **settings) -> FlaskClient:
    """The API over the world's database; the world delivers its messages."""
    made_of = Dependencies(
        Settings(**settings),
        world.database,
        world.cipher,
        world.types,
        operations(),
        world.messages.extend,
    )
    return assemble(made_of).test_client()


@pytest.fixture
def api(world: World) -> FlaskClient:
    return served(world, auth="token")


def out(world, value, resources):
    """Create a stack; return the value of an output."""
    world.create("s", resources, outputs={"it": {"value": value}})
    drain(world)
    return world.outputs("s")["it"]


def signed_url(world):
    return out(world, {"get_resource": "h"}, {"h": AWS_HANDLE, "w": aws_condition(1)})


def code(answer):
    [result] = ElementTree.fromstring(answer.data).iter("Code")
    return answer.status_code, result.text


def tampered(url, **changes):
    parts = urlsplit(url)
    query = {name: values[0] for name, values in parse_qs(parts.query).items()} | changes
    return urlunsplit(parts._replace(query=urlencode({k: v for k, v in query.items() if v is not None})))


def counted(world):
    return world.rows("SELECT count(*) AS n FROM signal")[0].n


def test_a_signal_at_the_signed_url_makes_the_condition_ready(world: World, api):
    url = signed_url(world)
    answer = api.put(url, data=json.dumps(SAID))  # as curl sends it: a form, by its type
    assert (answer.status_code, answer.json) == (
        200,
        {"resource": "h", "metadata": {"u": {"Status": "SUCCESS", "Reason": "r", "Data": "d"}}},
    )
    drain(world)
    assert world.rows("SELECT status FROM stack")[0].status == "COMPLETE"


def test_only_the_url_as_it_was_given_out_is_good(world: World, api):
    url = signed_url(world)
    body = json.dumps(SAID)
    invalid = parse_qs(urlsplit(url).query)["Signature"][0][:-5] + "AAAA="
    for changed, refusal in (
        (tampered(url, Signature=invalid), (403, "AccessDenied")),
        (tampered(url, Signature="ü"), (403, "AccessDenied")),
        (tampered(url, Timestamp="2036-01-01T00:00:00Z"), (403, "AccessDenied")),
        (tampered(url, Expires="1"), (403, "AccessDenied")),
        (tampered(url, SignatureMethod="None"), (403, "AccessDenied")),
        (tampered(url, SignatureVersion="0"), (403, "AccessDenied")),
        (tampered(url, AWSAccessKeyId="0" * 32), (403, "InvalidClientTokenId")),
        (tampered(url, AWSAccessKeyId=None), (403, "MissingAuthenticationToken")),
        (tampered(url, Signature=None), (400, "IncompleteSignature")),
        (url.replace("/resources/h?", "/resources/w?"), (403, "AccessDenied")),
    ):
        assert code(api.put(changed, data=body)) == refusal, changed
    assert api.post(url, data=body).status_code == 405
    other = url.replace("/waitcondition/", "/signal/")
    assert code(api.post(other, data=body)) == (403, "AccessDenied")
    assert counted(world) == 0
    assert api.put(url, data=body).status_code == 200


def test_a_url_is_good_behind_a_proxy_that_changes_host_and_path(world: World):
    world.engine = world.new_engine()
    world.settings.heat_metadata_server_url = "https://cloud.example/heat"
    api = served(world, auth="token", heat_metadata_server_url="https://cloud.example/heat/v1/")
    url = signed_url(world)
    assert url.startswith(
        "https://cloud.example/heat/v1/waitcondition/arn%3Aopenstack%3Aheat%3A%3Ap1%3Astacks/s/"
    )
    inside = url.replace("https://cloud.example/heat", "http://10.0.0.1:8004")
    assert api.put(inside, data=json.dumps(SAID)).status_code == 200
    assert api.put(tampered(inside, Timestamp="x"), data=json.dumps(SAID)).status_code == 403


def test_invalid_signals_are_refused_and_nothing_is_written(world: World, api):
    url = signed_url(world)
    for body, said in (
        ("{", None),
        ("[1]", None),
        ('{"Status": "SUCCESS"}', "Metadata format invalid"),
        ('{"Status": "MAYBE", "Reason": "", "Data": "", "UniqueId": "1"}', "Metadata format invalid"),
        ("[" * 500, None),
    ):
        answer = api.put(url, data=body)
        assert code(answer) == (400, "InvalidParameterValue"), body
        assert said is None or said in answer.text
    large = json.dumps({**SAID, "Data": "x" * 2_000_000})
    assert code(api.put(url, data=large)) == (400, "RequestLimitExceeded")
    large = api.put(url, data=large, headers={"Content-Type": "application/x-www-form-urlencoded"})
    assert code(large) == (400, "RequestLimitExceeded")
    assert counted(world) == 0


def test_a_url_ends_with_its_resource(world: World, api):
    url = signed_url(world)
    api.put(url, data=json.dumps(SAID))
    drain(world)
    world.act("s", "suspend")
    drain(world)
    assert code(api.put(url, data=json.dumps(SAID))) == (403, "InvalidClientTokenId")
    world.act("s", "resume")
    drain(world)
    assert api.put(url, data=json.dumps(SAID)).status_code == 200
    drain(world)
    world.update("s", {"a": test_resource()})
    world.deliver_all()
    assert code(api.put(url, data=json.dumps(SAID))) == (403, "InvalidClientTokenId")
    assert world.rows("SELECT 1 FROM access") == []


def test_a_resource_that_is_being_deleted_takes_no_signal(world: World, api):
    url = signed_url(world)
    with world.database.engine.begin() as db:
        db.execute(text("UPDATE resource SET action = 'DELETE' WHERE name = 'h'"))
    answer = api.put(url, data=json.dumps(SAID))
    assert code(answer) == (400, "InvalidParameterValue")
    assert "Signal resource during DELETE is not supported." in answer.text
    assert counted(world) == 0


def test_secrets_are_nowhere_in_the_open(world: World, api):
    url = signed_url(world)
    [access] = world.rows("SELECT secret FROM access")
    secret = world.cipher.open(access.secret)
    signature = parse_qs(urlsplit(url).query)["Signature"][0]
    for table in ("access", "resource", "event", "graph_node", "revision", "resource_definition"):
        for row in world.rows(f"SELECT t::text AS whole FROM {table} t"):
            assert secret not in row.whole
            assert signature not in row.whole
            assert quote(signature, safe="") not in row.whole
    headers = {"X-Auth-Token": create_token(world.database, "p1")}
    stack = world.stack_row("s")
    for path in ("resources", "resources/h", "resources/w", "events", "resources/h/metadata"):
        answer = api.get(f"/v1/p1/stacks/s/{stack.uuid}/{path}", headers=headers)
        assert answer.status_code == 200
        assert secret not in answer.text
        assert quote(signature, safe="") not in answer.text


def test_keys_are_sealed_again_with_the_newest(world: World, api):
    url = signed_url(world)
    new = Cipher([new_key()])
    [row] = world.rows("SELECT secret FROM access")
    sealed = new.seal(world.cipher.open(row.secret))
    assert ("access.secret", 1, 0) in list(
        rotate_keys(world.database, Cipher([newest := new_key(), *_keys(world.cipher)]))
    )
    [row] = world.rows("SELECT secret FROM access")
    assert Cipher([newest]).open(row.secret) == new.open(sealed)
    assert url


def _keys(cipher):
    import base64

    return [
        base64.urlsafe_b64encode(_fernet._signing_key + _fernet._encryption_key).decode()
        for _fernet in cipher._fernet._fernets
    ]


def test_signals_are_shown_although_the_url_is_secret_and_the_templates_metadata_is_not(world: World, api):
    handle = {**AWS_HANDLE, "metadata": {"from": "template"}}
    url = out(world, {"get_resource": "h"}, {"h": handle})
    api.put(url, data=json.dumps(SAID))
    drain(world)
    headers = {"X-Auth-Token": create_token(world.database, "p1")}
    shown = api.get(f"/v1/p1/stacks/s/{world.stack_row('s').uuid}/resources/h/metadata", headers=headers)
    assert shown.json == {
        "metadata": {"from": "******", "u": {"Status": "SUCCESS", "Reason": "r", "Data": "d"}}
    }


class TestTokens:
    @pytest.fixture
    def given(self, world: World):
        """The attributes of the handle: token, endpoint, and the whole."""
        names = ["token", "endpoint", "curl_cli", "signal"]
        value = [{"get_attr": ["h", name]} for name in names]
        resources = {"h": HANDLE, "w": condition(1), "x": test_resource()}
        return dict(zip(names, out(world, value, resources), strict=True))

    def test_it_signals_its_own_resource_and_does_nothing_else(self, world: World, api, given):
        stack = world.stack_row("s")
        headers = {"X-Auth-Token": given["token"]}
        assert given["endpoint"] == f"http://127.0.0.1:8004/v1/p1/stacks/s/{stack.uuid}/resources/h/signal"
        place = f"/v1/p1/stacks/s/{stack.uuid}"
        for method, path, status in (
            ("GET", place, 403),
            ("DELETE", place, 403),
            ("GET", f"{place}/resources/h", 403),
            ("GET", f"{place}/resources", 403),
            ("GET", "/v1/p1/stacks", 403),
            ("POST", "/v1/p1/stacks", 403),
            ("POST", f"{place}/resources/x/signal", 403),
            ("GET", f"{place}/resources/x/metadata", 403),
            ("GET", f"{place}/resources/h/metadata", 200),
            ("GET", "/v1/p1/stacks/s", 302),
            ("GET", "/v1/p2/stacks/s", 403),
            ("POST", f"{place}/resources/h/signal", 200),
        ):
            answer = api.open(path, method=method, headers=headers)
            assert answer.status_code == status, (method, path, answer.text)
        drain(world)
        assert world.rows("SELECT status FROM stack")[0].status == "COMPLETE"

    def test_it_knows_no_other_stack(self, world: World, api, given):
        world.create("other", {"h": HANDLE})
        drain(world)
        headers = {"X-Auth-Token": given["token"]}
        assert api.get("/v1/p1/stacks/other", headers=headers).status_code == 404
        other = world.stack_row("other").uuid
        path = f"/v1/p1/stacks/other/{other}/resources/h/signal"
        assert api.post(path, headers=headers).status_code == 404

    def test_it_ends_with_the_resource(self, world: World, api, given):
        world.update("s", {"x": test_resource()})
        world.deliver_all()
        answer = api.post(given["endpoint"], headers={"X-Auth-Token": given["token"]})
        assert answer.status_code == 401

    def test_its_command_is_complete(self, given):
        assert given["curl_cli"] == (
            f"curl -i -X POST -H 'X-Auth-Token: {given['token']}' -H 'Content-Type: application/json' "
            f"-H 'Accept: application/json' {given['endpoint']}"
        )
        assert json.loads(given["signal"]) == {"endpoint": given["endpoint"], "token": given["token"]}


@pytest.mark.parametrize("transport", ["CFN_SIGNAL", "HEAT_SIGNAL"])
def test_the_attributes_of_a_handle_suffice_to_signal(world: World, api, transport):
    handle = {**HANDLE, "properties": {"signal_transport": transport}}
    reported = json.loads(out(world, {"get_attr": ["h", "signal"]}, {"h": handle, "w": condition(1)}))
    if transport == "CFN_SIGNAL":
        answer = api.put(reported["alarm_url"], data="{}")
    else:
        answer = api.post(reported["alarm_url"], headers={"X-Auth-Token": reported["token"]})
    assert answer.status_code == 200
    drain(world)
    assert world.rows("SELECT status FROM stack")[0].status == "COMPLETE"


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


@pytest.mark.parametrize("transport", ["TEMP_URL_SIGNAL", "ZAQAR_SIGNAL"])
def test_a_transport_without_its_service_is_refused(world: World, transport):
    api = served(world)
    template = {
        "heat_template_version": "2021-04-16",
        "resources": {"h": {**HANDLE, "properties": {"signal_transport": transport}}},
    }
    answer = api.post("/v1/p1/stacks", json={"stack_name": "s", "template": template})
    assert answer.status_code == 400
    assert f"{transport} needs the service" in answer.json["error"]["message"]


def test_the_version_alone_is_still_not_found(world: World):
    api = served(world)
    for path in ("/v1", "/v1/", "/v1/.query", "/v1/?x=1", "/v1/.query?Action=DescribeStackResource"):
        assert api.get(path).status_code == 404
    assert api.get("/v1/?Action=DescribeStackResource").status_code == 400
    assert code(api.post("/v1/", data={"Action": "x" * 5_000_000})) == (400, "RequestLimitExceeded")
