"""Requests of CloudFormation's query API: tokens, validation, refusals and permissions."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.cloudformation import CFN_PORT, body, cfn, client, coloured, key_pair, refusal, thing, up, wait
from tests.e2e.running import Up

__all__ = ["cfn", "up"]  # fixtures


def test_a_request_under_a_token_counts_once(cfn: Any) -> None:
    requests = {"StackName": "once", "TemplateBody": body({"A": thing()}), "ClientRequestToken": "make-1"}
    made = cfn.create_stack(**requests)
    assert cfn.create_stack(**requests)["StackId"] == made["StackId"]
    with pytest.raises(cfn.exceptions.TokenAlreadyExistsException):
        cfn.create_stack(**{**requests, "StackName": "other"})
    with pytest.raises(cfn.exceptions.AlreadyExistsException):
        cfn.create_stack(**{**requests, "ClientRequestToken": "make-2"})
    wait(cfn, "stack_create_complete", "once")
    changed = {**requests, "TemplateBody": body({"A": thing("w")}), "ClientRequestToken": "change-1"}
    for _ in range(3):
        assert cfn.update_stack(**changed)["StackId"] == made["StackId"]
        wait(cfn, "stack_update_complete", "once")
    events = cfn.describe_stack_events(StackName="once")["StackEvents"]
    own = [event["ResourceStatus"] for event in reversed(events) if event["LogicalResourceId"] == "once"]
    assert own == ["CREATE_IN_PROGRESS", "CREATE_COMPLETE", "UPDATE_IN_PROGRESS", "UPDATE_COMPLETE"]
    for _ in range(2):
        cfn.delete_stack(StackName="once", ClientRequestToken="remove-1")
        wait(cfn, "stack_delete_complete", made["StackId"])
    assert cfn.create_stack(**requests)["StackId"] == made["StackId"]  # it was made, and is gone
    assert refusal(cfn.describe_stacks, StackName="once")[1] == "ValidationError"
    with pytest.raises(cfn.exceptions.TokenAlreadyExistsException):
        cfn.delete_stack(StackName="taken", ClientRequestToken="remove-1")
    assert refusal(cfn.delete_stack, StackName="x", ClientRequestToken="no spaces")[1] == (
        "InvalidParameterValue"
    )


def test_unavailable_types_name_their_alternative(cfn: Any) -> None:
    change = refusal(cfn.create_change_set, StackName="s", ChangeSetName="c", TemplateBody=body({}))
    assert change[:2] == (400, "InvalidAction")
    assert "preview" in change[2]
    assert "converge" in refusal(cfn.detect_stack_drift, StackName="s")[2]


def test_templates_are_checked_and_cost_nothing(cfn: Any) -> None:
    faults = cfn.validate_template(TemplateBody=coloured())
    assert faults["Description"] == "A thing"
    declared = {Parameter["ParameterKey"]: Parameter for Parameter in faults["Parameters"]}
    assert (declared["Colour"]["DefaultValue"], declared["Colour"]["NoEcho"]) == ("red", False)
    assert (declared["Colour"]["Description"], declared["Secret"]["NoEcho"]) == ("Of the thing.", True)
    assert cfn.estimate_template_cost(TemplateBody=coloured())["Url"].endswith("/Gratis")
    bad = body({"A": {"Type": "No::Such::Type"}, "B": {"Ref": "nobody"}})
    status, code, _ = refusal(cfn.validate_template, TemplateBody=bad)
    assert (status, code) == (400, "ValidationError")
    status, code, message = refusal(cfn.validate_template, TemplateURL="http://127.0.0.1:1/t.json")
    assert (status, code) == (400, "InvalidParameterValue")
    assert "Could not retrieve template" in message


def test_impossible_requests_are_refused_with_amazons_message(up: Up, cfn: Any) -> None:
    cfn.create_stack(StackName="taken", TemplateBody=body({}))
    assert refusal(cfn.create_stack, StackName="taken", TemplateBody=body({})) == (
        400,
        "AlreadyExistsException",
        "The Stack (taken) already exists.",
    )
    assert refusal(cfn.create_stack, StackName="1", TemplateBody=body({}))[:2] == (400, "ValidationError")
    missing = refusal(cfn.create_stack, StackName="x")
    assert missing == (
        400,
        "MissingParameter",
        "A mandatory input parameter is missing:TemplateBody or TemplateURL",
    )
    for call in (cfn.update_stack, cfn.delete_stack, cfn.get_template, cfn.cancel_update_stack):
        additional = {"UsePreviousTemplate": True} if call == cfn.update_stack else {}
        assert refusal(call, StackName="nowhere", **additional)[1] == "ValidationError"
    protected = {"EnableTerminationProtection": True, "OnFailure": "DELETE", "DisableRollback": True}
    status, code, message = refusal(cfn.create_stack, StackName="x", TemplateBody=body({}), **protected)
    assert (status, code) == (400, "InvalidParameterValue")
    assert "EnableTerminationProtection is not supported" in message
    assert "DisableRollback and OnFailure" in message
    unknown = [{"ParameterKey": "None", "UsePreviousValue": True}]
    again = refusal(cfn.update_stack, StackName="taken", UsePreviousTemplate=True, Parameters=unknown)
    assert again[1:] == ("ValidationError", "The Parameter (None) was not defined in template.")


def test_permissions_of_roles(up: Up, cfn: Any) -> None:
    reader = client(up, key_pair(up, "shop", "--role", "reader"), port=CFN_PORT)
    assert reader.describe_stacks()["Stacks"]
    assert refusal(reader.create_stack, StackName="x", TemplateBody=body({}))[:2] == (403, "AccessDenied")
    other = client(up, key_pair(up, "elsewhere"), "/v1/")
    assert other.describe_stacks()["Stacks"] == []
    theirs = cfn.list_stacks()["StackSummaries"][0]
    for name in (theirs["StackName"], theirs["StackId"], theirs["StackId"].rpartition("/")[2]):
        assert refusal(other.describe_stacks, StackName=name)[1] == "ValidationError"
    forged = client(up, {**key_pair(up, "shop"), "aws_secret_access_key": "guessed"})
    assert refusal(forged.list_stacks)[:2] == (403, "SignatureDoesNotMatch")
    stranger = client(up, {"aws_access_key_id": "shop", "aws_secret_access_key": "x"})
    assert refusal(stranger.list_stacks)[:2] == (403, "InvalidClientTokenId")
