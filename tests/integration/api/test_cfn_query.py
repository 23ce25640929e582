"""CloudFormation's query API through the application: signatures, refusals, pages; boto3 is in tests/e2e."""

# ruff: noqa: F811 - fixtures are imported
from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode
from xml.etree import ElementTree

import orjson
import pytest
from werkzeug.test import TestResponse

from api.cloudformation import resources, stacks
from orchestrator.operations.outputs.outputs import Output
from orchestrator.resources.ec2_signatures import signature_v2, signature_v4
from orchestrator.security.key_pairs import create_key_pair, revoke_key_pair
from tests.integration.api_world import Client, World, project, world  # noqa: F401 - fixtures

HOST = "localhost"
FORM = "application/x-www-form-urlencoded"
Keys = tuple[str, str]
Params = Mapping[str, Any]
LIST = {"Action": "ListStacks"}


@pytest.fixture(scope="module")
def api(world: World) -> Client:
    return world.client(auth="token")


@pytest.fixture
def keys(world: World, project: str) -> Keys:
    return create_key_pair(world.database, world.cipher, project, roles=["member", "reader"], name="ci")


def v2(keys: Keys, params: Params, verb: str = "GET", *, at: dt.timedelta | None = None) -> dict[str, str]:
    """Return the parameters of a request signed now, or `at` from now."""
    then = dt.datetime.now(dt.UTC) + (at or dt.timedelta())
    whole = {"AWSAccessKeyId": keys[0], "SignatureVersion": "2", "SignatureMethod": "HmacSHA256", **params}
    whole = {"Timestamp": then.strftime("%Y-%m-%dT%H:%M:%SZ"), **whole}
    whole = {name: value for name, value in whole.items() if value is not None}
    return {**whole, "Signature": signature_v2(keys[1], verb, HOST, "/v1/", whole)}


def v4(
    keys: Keys,
    verb: str = "POST",
    query: Params | None = None,
    form: Params | None = None,
    *,
    at: dt.timedelta | None = None,
    day: str | None = None,
    names: str = "host;x-amz-date",
) -> dict[str, str]:
    """Return the headers of a request signed now, or `at` from now."""
    stamp = (dt.datetime.now(dt.UTC) + (at or dt.timedelta())).strftime("%Y%m%dT%H%M%SZ")
    scope = f"{day or stamp[:8]}/RegionOne/cloudformation/aws4_request"
    body = urlencode(form or {}).encode()
    signature = signature_v4(
        keys[1], verb, "/v1/", dict(query or {}), {"host": HOST, "x-amz-date": stamp},
        scope=scope, stamp=stamp, body_hash=hashlib.sha256(body).hexdigest(),
    )  # fmt: skip
    signed = f"Credential={keys[0]}/{scope}, SignedHeaders={names}, Signature={signature}"
    return {"X-Amz-Date": stamp, "Authorization": f"AWS4-HMAC-SHA256 {signed}"}


def get(api: Client, params: Params, **options: Any) -> TestResponse:
    return api.http.get("/v1/", query_string=dict(params), **options)


def post(api: Client, params: Params, **options: Any) -> TestResponse:
    return api.http.post("/v1/", data=urlencode(params), content_type=FORM, **options)


def refusal(answer: TestResponse) -> tuple[int, str]:
    error = ElementTree.fromstring(answer.data)
    assert error.tag == "ErrorResponse"
    assert error.findtext("Error/Type") == ("Server" if answer.status_code >= 500 else "Sender")
    assert (error.findtext("RequestId") or "").startswith("req-")
    assert error.findtext("Error/Message")
    return answer.status_code, error.findtext("Error/Code") or ""


def asked(api: Client, keys: Keys, **params: Any) -> dict[str, Any]:
    """Return the result of an action."""
    answer = get(api, v2(keys, {**params, "ContentType": "JSON"}))
    assert answer.status_code == 200, answer.text
    name = params["Action"]
    result: dict[str, Any] = answer.json[f"{name}Response"][f"{name}Result"]
    return result


@pytest.mark.parametrize("verb", ["GET", "POST", "PUT", "DELETE"])
def test_both_versions_of_signatures_are_good_in_an_address_and_in_a_form(
    api: Client, keys: Keys, verb: str
) -> None:
    def ask(**options: Any) -> int:
        return api.http.open("/v1/", method=verb, **options).status_code

    form = {"content_type": FORM}
    assert ask(query_string=v2(keys, LIST, verb)) == 200
    assert ask(query_string=LIST, headers=v4(keys, verb, LIST)) == 200
    if verb == "POST":
        assert ask(data=urlencode(v2(keys, LIST, verb)), **form) == 200
        assert ask(data=urlencode(LIST), headers=v4(keys, verb, form=LIST), **form) == 200


def test_a_signature_is_good_for_minutes(api: Client, keys: Keys) -> None:
    hour = dt.timedelta(hours=1)
    for at in (hour, -hour):
        assert refusal(get(api, v2(keys, LIST, at=at))) == (400, "RequestExpired")
        assert refusal(get(api, LIST, headers=v4(keys, "GET", LIST, at=at))) == (400, "RequestExpired")
    now, week = dt.datetime.now(dt.UTC), dt.timedelta(days=7)
    for validity, status in ((hour, 200), (week - hour, 200), (week + hour, 400), (-hour, 400)):
        answer = get(api, v2(keys, {**LIST, "Expires": (now + validity).isoformat()}))
        assert answer.status_code == status
        assert status == 200 or refusal(answer) == (400, "RequestExpired")
    assert refusal(get(api, v2(keys, {**LIST, "Expires": "2999-01-01T00:00:00Z"}))) == (400, "RequestExpired")
    for when in (None, "soon"):
        unclear = v2(keys, {**LIST, "Timestamp": when})
        assert refusal(get(api, unclear)) == (400, "IncompleteSignature")


def test_the_signed_request_is_the_executed_request(api: Client, keys: Keys) -> None:
    good = v2(keys, {"Action": "DescribeStacks", "StackName": "mine"})
    not_the_same = (403, "SignatureDoesNotMatch")
    assert refusal(get(api, {**good, "StackName": "another"})) == not_the_same
    assert refusal(get(api, {**good, "More": "1"})) == not_the_same
    assert refusal(api.http.delete("/v1/", query_string=good)) == not_the_same
    assert refusal(get(api, {**good, "SignatureMethod": "None"})) == not_the_same
    assert refusal(get(api, {**good, "SignatureVersion": "1"})) == not_the_same
    headers = v4(keys, form=LIST)
    assert refusal(post(api, {"Action": "DescribeStacks"}, headers=headers)) == not_the_same
    assert refusal(post(api, LIST, headers=headers, query_string={"More": "1"})) == not_the_same
    assert refusal(post(api, LIST, headers=v4(keys, form=LIST, day="20200101"))) == not_the_same
    twice = api.http.post("/v1/?StackName=another", data=urlencode(v2(keys, LIST, "POST")), content_type=FORM)
    assert refusal(twice) == not_the_same
    signed = v2(keys, {"Action": "DescribeStacks", "StackName": "mine"}, "POST")
    for query, form in (("StackName=other", signed), ("Action=ListStacks&Action=DeleteStack", LIST)):
        answer = api.http.post(f"/v1/?{query}", data=urlencode(form), content_type=FORM)
        assert refusal(answer) == (400, "InvalidParameterCombination")


def test_a_signature_that_is_none_is_refused(api: Client, world: World, keys: Keys) -> None:
    assert refusal(get(api, LIST)) == (400, "IncompleteSignature")
    assert refusal(get(api, {**LIST, "Signature": "x"})) == (403, "MissingAuthenticationToken")
    assert refusal(get(api, v2((keys[0], "guessed"), LIST))) == (403, "SignatureDoesNotMatch")
    assert refusal(get(api, v2(("nobody", keys[1]), LIST))) == (403, "InvalidClientTokenId")
    assert refusal(get(api, v2(("k" * 9_000, keys[1]), LIST))) == (403, "AccessDenied")
    assert refusal(post(api, LIST, headers=v4(keys, form=LIST, names="x-amz-date"))) == (
        400,
        "IncompleteSignature",
    )
    undated = {**v4(keys, form=LIST), "X-Amz-Date": "today"}
    assert refusal(post(api, LIST, headers=undated)) == (400, "IncompleteSignature")
    other = {"Authorization": "Basic eDp5"}
    assert refusal(post(api, LIST, headers=other)) == (400, "IncompleteSignature")
    revoke_key_pair(world.database, keys[0])
    assert refusal(get(api, v2(keys, LIST))) == (403, "InvalidClientTokenId")


def test_a_reader_only_reads(world: World, api: Client, project: str) -> None:
    reader = create_key_pair(world.database, world.cipher, project, roles=["reader"])
    nobody = create_key_pair(world.database, world.cipher, project, roles=[])
    assert get(api, v2(reader, LIST)).status_code == 200
    assert refusal(get(api, v2(nobody, LIST))) == (403, "AccessDenied")
    for action in ("CreateStack", "UpdateStack", "CancelUpdateStack", "DeleteStack"):
        assert refusal(get(api, v2(reader, {"Action": action}))) == (403, "AccessDenied")


def test_a_query_that_asks_for_nothing_that_is_is_refused(api: Client, keys: Keys) -> None:
    assert refusal(post(api, {})) == (400, "MissingAction")
    assert refusal(get(api, v2(keys, {"Action": "CreateChangeSet"}))) == (400, "InvalidAction")
    assert refusal(post(api, {"Action": "\0"})) == (400, "InvalidParameterValue")
    assert refusal(post(api, {f"a{n}": "" for n in range(10_002)})) == (400, "RequestLimitExceeded")
    assert refusal(post(api, {"TemplateBody": "x" * 5_000_000})) == (400, "RequestLimitExceeded")
    assert api.http.get("/v1/").status_code == 404
    assert api.http.head("/v1/?Action=ListStacks").status_code == 404


def test_a_query_gets_all_its_faults(api: Client, keys: Keys) -> None:
    invalid = {
        "Action": "CreateStack",
        "TimeoutInMinutes": "0",
        "DisableRollback": "perhaps",
        "StackPolicyBody": "{}",
        "ResourceTypes.member.1": "OS::Heat::Value",
        "Parameters.member.1.ParameterValue": "1",
        "Parameters.member.2.ParameterKey": "b",
        "Parameters.member.4.ParameterKey": "c",
        "Parameters.member.4.ParameterValue": "1",
        "Parameters.member.3.ParameterKey": "c",
        "Parameters.member.3.UsePreviousValue": "true",
        "Tags.member.1.Key": "a,b",
    }
    answer = get(api, v2(keys, invalid))
    assert refusal(answer) == (400, "InvalidParameterValue")
    message = ElementTree.fromstring(answer.data).findtext("Error/Message") or ""
    for fault in (
        "ResourceTypes is not supported here",
        "StackPolicyBody is not supported here",
        "DisableRollback must be true or false, not perhaps",
        "mandatory input parameter is missing:ParameterKey",
        "the parameter b has no ParameterValue",
        "the parameter c is given twice",
        "missing:TemplateBody or TemplateURL",
        "TimeoutInMinutes must be a whole number above 0, not 0",
        "the tag a,b has a comma",
        "missing:StackName",
    ):
        assert fault in message


def test_requests_reach_the_operations_as_those_of_the_native_api(
    api: Client, world: World, project: str, keys: Keys
) -> None:
    large = "x" * 900_000
    made = asked(
        api, keys, Action="CreateStack", StackName="a", TemplateBody="{}", OnFailure="DO_NOTHING",
        **{"Parameters.member.1.ParameterKey": "p", "Parameters.member.1.ParameterValue": ""},
    )  # fmt: skip
    assert made["StackId"].startswith(f"arn:openstack:heat::{project}:stacks/made/")
    assert orjson.loads(world.neighbour.bodies[-1]) == {
        "template": "{}",
        "stack_name": "a",
        "parameters": {"p": ""},
        "disable_rollback": True,
    }
    assert (world.neighbour.in_files[-1], world.neighbour.projects[-1]) == (None, project)
    params = {"Action": "CreateStack", "StackName": "a", "TemplateBody": large}
    assert post(api, params, headers=v4(keys, form=params)).status_code == 200
    place = world.neighbour.in_files[-1]
    assert place is not None
    assert not place.exists()
    stored = {"environment": {"parameters": {"size": 4, "names": ["a"], "password": None}}}
    world.stack(project, "there", tags=["team=red"], revision=stored)
    asked(api, keys, Action="UpdateStack", StackName="there", TemplateUrl="http://h/t")
    assert orjson.loads(world.neighbour.bodies[-1]) == {
        "template_url": "http://h/t",
        "parameters": {},
        "tags": "team=red",
    }
    assert world.neighbour.patched is False
    asked(
        api, keys, Action="UpdateStack", StackName="there", UsePreviousTemplate="true",
        DisableRollback="true",
        **{"Parameters.member.1.ParameterKey": "password", "Parameters.member.1.UsePreviousValue": "true"},
    )  # fmt: skip
    assert orjson.loads(world.neighbour.bodies[-1]) == {
        "parameters": {},
        "disable_rollback": True,
        "clear_parameters": ["names", "size"],
    }
    assert world.neighbour.patched is True


def test_a_page_of_stacks_with_large_outputs_ends_early(
    world: World, keys: Keys, project: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stacks, "MAX_OUTPUTS_BYTES", 10_000)
    monkeypatch.setattr(world.neighbour, "outputs", lambda *_: [Output("it", "", "x" * 6_000)])
    api = world.client(auth="token")
    for number in range(5):
        world.stack(project, f"large{number}", age=number)
    found, additional = [], dict[str, str]()
    while True:
        answer = asked(api, keys, Action="DescribeStacks", **additional)
        assert len(answer["Stacks"]) <= 2
        found += [stack["StackName"] for stack in answer["Stacks"]]
        if "NextToken" not in answer:
            break
        additional = {"NextToken": answer["NextToken"]}
    assert found == [f"large{number}" for number in (4, 3, 2, 1, 0)]


def test_lists_come_in_pages(
    api: Client, world: World, project: str, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stacks, "MAX_PAGE", 2)
    monkeypatch.setattr(stacks, "MAX_DETAILED_PAGE", 2)
    monkeypatch.setattr(resources, "MAX_PAGE", 2)
    names = [f"s{number}" for number in range(5)]
    for age, name in enumerate(names):
        world.stack(project, name, age=age)
    made = world.stack(project, "full", age=9)
    for name in "dbeac":
        world.resource(made, name)
        world.event(made, name)

    def paged(action: str, result: str, name: str, **params: Any) -> list[str]:
        actual, additional = [], {}
        while True:
            answer = asked(api, keys, Action=action, **params, **additional)
            assert len(answer[result]) <= 2
            actual += [item[name] for item in answer[result]]
            if "NextToken" not in answer:
                return actual
            additional = {"NextToken": answer["NextToken"]}

    assert paged("ListStacks", "StackSummaries", "StackName") == ["full", *reversed(names)]
    assert paged("DescribeStacks", "Stacks", "StackName") == ["full", *reversed(names)]
    here = {"StackName": "full"}
    assert paged("ListStackResources", "StackResourceSummaries", "LogicalResourceId", **here) == list("abcde")
    assert paged("DescribeStackEvents", "StackEvents", "LogicalResourceId", **here) == list("caebd")
    for token in ("nonsense", "7c6c8f58-4b32-4d6b-9a8e-6a5f3f1f9a01", "x" * 2_000):
        assert refusal(get(api, v2(keys, {**LIST, "NextToken": token}))) == (400, "InvalidParameterValue")


def test_too_many_resources_for_an_unpaged_answer_are_refused(
    api: Client, world: World, project: str, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resources, "MAX_RESOURCES", 1)
    made = world.stack(project, "full")
    for name in "ab":
        world.resource(made, name, physical_id=f"{project}-{name}")
    params = {"Action": "DescribeStackResources", "StackName": "full"}
    assert refusal(get(api, v2(keys, params))) == (400, "RequestLimitExceeded")
    result = asked(api, keys, **params, LogicalResourceId="b")["StackResources"]
    assert [item["LogicalResourceId"] for item in result] == ["b"]
    both = {**params, "PhysicalResourceId": "x"}
    assert refusal(get(api, v2(keys, both))) == (400, "InvalidParameterCombination")
    nobody = {"Action": "DescribeStackResources", "PhysicalResourceId": "x"}
    assert refusal(get(api, v2(keys, nobody))) == (400, "ValidationError")
    assert refusal(get(api, v2(keys, {"Action": "DescribeStackResources"}))) == (400, "MissingParameter")


def test_a_thing_of_another_projects_is_not_found_by_its_physical_id(
    api: Client, world: World, keys: Keys
) -> None:
    theirs = world.stack("others", "theirs")
    world.resource(theirs, "a", physical_id="their-thing")
    params = {"Action": "DescribeStackResources", "PhysicalResourceId": "their-thing"}
    assert refusal(get(api, v2(keys, params))) == (400, "ValidationError")
    for name in (str(theirs.uuid), f"arn:openstack:heat::others:stacks/theirs/{theirs.uuid}"):
        params = {"Action": "DescribeStacks", "StackName": name}
        assert refusal(get(api, v2(keys, params))) == (400, "ValidationError")


def test_a_nested_stack_names_those_it_is_in(api: Client, world: World, project: str, keys: Keys) -> None:
    root = world.stack(project, "root")
    middle = world.stack(project, "root-m-1", owner_id=root.id, root_id=root.id, depth=1)
    leaf = world.stack(project, "root-m-1-l-2", owner_id=middle.id, root_id=root.id, depth=2)
    [shown] = asked(api, keys, Action="DescribeStacks", StackName=str(leaf.uuid))["Stacks"]
    arn = f"arn:openstack:heat::{project}:stacks"
    assert shown["ParentId"] == f"{arn}/root-m-1/{middle.uuid}"
    assert shown["RootId"] == f"{arn}/root/{root.uuid}"
    assert [item["StackName"] for item in asked(api, keys, **LIST)["StackSummaries"]] == ["root"]


def test_characters_that_are_invalid_in_xml_are_replaced(
    api: Client, world: World, project: str, keys: Keys
) -> None:
    world.stack(project, "odd", status_reason="bell \x07 & <tag> ö\ufffe")
    answer = get(api, v2(keys, LIST))
    assert answer.mimetype == "application/xml"
    said = ElementTree.fromstring(answer.data).findtext(".//member/StackStatusReason")
    assert said == "bell \ufffd & <tag> ö\ufffd"


@pytest.fixture(scope="module")
def open_api(world: World) -> Client:
    """An application without authentication."""
    return world.client()


def test_without_authentication_the_key_names_the_project_or_the_default_applies(
    open_api: Client, world: World, project: str
) -> None:
    world.stack(project, "theirs")
    world.stack("demo", "of-demo")
    for answer in (
        get(open_api, v2((project, "anything"), LIST)),
        post(open_api, LIST, headers=v4((project, "anything"), form={"other": "1"})),
        get(open_api, {**LIST, "AWSAccessKeyId": project}),
    ):
        assert b"<StackName>theirs</StackName>" in answer.data
    assert b"<StackName>of-demo</StackName>" in get(open_api, LIST).data


def test_a_known_key_is_checked_without_authentication(open_api: Client, world: World, keys: Keys) -> None:
    assert get(open_api, v2(keys, LIST)).status_code == 200
    assert refusal(get(open_api, v2((keys[0], "guessed"), LIST))) == (403, "SignatureDoesNotMatch")
    assert refusal(get(open_api, {**LIST, "AWSAccessKeyId": keys[0]})) == (400, "IncompleteSignature")


@pytest.mark.parametrize(
    "headers", [{"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Origin": "null"}]
)
def test_a_browser_cannot_be_made_to_ask_by_another_page(open_api: Client, headers: Params) -> None:
    assert refusal(post(open_api, LIST, headers=dict(headers))) == (403, "AccessDenied")
    own = {"Origin": f"http://{HOST}", "Sec-Fetch-Site": "same-origin"}
    assert post(open_api, LIST, headers=own).status_code == 200
